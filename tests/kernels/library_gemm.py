"""Cases on a given kernel. The services that some call are compiled beside them, without the rest of the runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ait_mlir.lowering.kernels import Kernel, Target, kernel_of
from tests.kernels.harness import CPU, Case, Library

SRC = Path(__file__).parents[2] / "runtime/src"
GLUE = """\
#include <stdio.h>
#include "gemm.h"
static int32_t told(const ait_host_v1* host, int32_t status, const std::string& error) {
  return status == 0 ? 0 : host->fail(host->self, error.c_str());
}
static int32_t test_gemm(const ait_host_v1* host, const ait_gemm_v2* args, void* stream) {
  std::string error;
  ait::runtime::Gemm gemm;
  const int32_t status = ait::runtime::read_gemm(*args, &gemm, &error) ? ait::runtime::compute_gemm(gemm, stream, &error) : 1;
  return told(host, status, error);
}
extern "C" const ait_gemm_service_v2 ait_test_gemm{test_gemm};
"""
CUDA_GLUE = """\
#include <cuda_runtime_api.h>
#include "cuda/cudnn_services.h"
extern "C" void* ait_test_workspace() {
  static void* const made = [] {
    void* bytes = nullptr;
    return cudaMalloc(&bytes, 64 << 20) == cudaSuccess ? bytes : nullptr;
  }();
  return made;
}
static int32_t test_attention(const ait_host_v1* host, const ait_attention_v1* args, void* stream) {
  std::string error;
  const int32_t status = ait::runtime::compute_attention(*args, stream, &error);
  return told(host, status, error);
}
static int32_t test_conv(const ait_host_v1* host, const ait_conv_v1* args, void* stream) {
  std::string error;
  const int32_t status = ait::runtime::compute_conv(*args, stream, &error);
  return told(host, status, error);
}
extern "C" const ait_attention_service_v1 ait_test_attention{test_attention};
extern "C" const ait_conv_service_v1 ait_test_conv{test_conv};
"""
SERVICES = {
    "openblas": ("ait_gemm_service_v2", "ait_test_gemm"),
    "cublaslt": ("ait_gemm_service_v2", "ait_test_gemm"),
    "padded-cublaslt": ("ait_gemm_service_v2", "ait_test_gemm"),
    "cudnn": ("ait_attention_service_v1", "ait_test_attention"),
    "conv": ("ait_conv_service_v1", "ait_test_conv"),
}
"""The table that the kernels of a provider call, of convolutions that of `conv`, and ours."""
WITH_WORKSPACE = {"cudnn"}


class ConfiguredCase(Case):
    """A case on the kernel of `provider` with the configuration `config`."""

    provider = "native"
    config: Mapping[str, int] = {}

    def chosen(self, target: Target) -> tuple[Kernel, Mapping[str, int]]:
        return kernel_of(self.provider, self.op, target), self.config

    def code(self, index: int | str, target: Target = CPU) -> tuple[tuple[str, ...], str]:
        includes, text = super().code(index, target)
        if self.provider not in WITH_WORKSPACE:
            text = text.replace("args.workspace_bytes = ", "args.workspace_bytes = 0 * ")
        return includes, text

    def entry(self, index: int | str, target: Target = CPU) -> str:
        text = super().entry(index, target)
        if self.provider not in SERVICES:
            return text
        table, ours = SERVICES["conv" if self.op.name == "ait.conv" else self.provider]
        found = f'extern "C" const {table} {ours};\nextern "C" void* ait_test_workspace();\n'
        text = text.replace(
            "  (void)buffers;", f"  ait::detail::needed_service<{table}>.entry.table = &{ours};\n  (void)buffers;"
        )
        own = f"buffers[{len(self.op.operands) + len(self.op.results)}]"
        return found + (text.replace(own, "ait_test_workspace()") if self.provider in WITH_WORKSPACE else text)


def on_kernel(
    case: Case, provider: str, config: Mapping[str, int] | None = None, constants: Sequence[int] = ()
) -> ConfiguredCase:
    """The same case on the kernel of `provider`."""
    made = ConfiguredCase(case.text, case.envs, case.strides, case.offset, None, constants, case.below, case.offsets)
    made.provider, made.config = provider, config or {}
    return made


def whole_source(path: Path) -> str:
    """A source of the runtime with the headers of the runtime inside."""

    def included(found: re.Match[str]) -> str:
        headers = [folder / found.group(1) for folder in (path.parent, SRC)]
        return next((whole_source(header) for header in headers if header.exists()), found.group())

    return re.sub(r'^#include "([^"]+)"$', included, path.read_text(), flags=re.MULTILINE)


class GemmLibrary(Library):
    """The compiled cases with the service that they call."""

    def sources(self, cases: Sequence[Case], workdir: Path) -> dict[str, str]:
        files = ["dynamic_library.cc", "cpu/openblas.cc"]
        if self.target.is_gpu:
            files = [
                "dynamic_library.cc",
                "gpu/gemm_lt.cc",
                *(f"cuda/cudnn_{n}.cc" for n in ("attention", "conv", "plans")),
            ]
        sources = super().sources(cases, workdir)
        sources |= {Path(file).name: whole_source(SRC / file) for file in files}
        glue = Path(workdir) / "glue" / "glue.cc"
        glue.parent.mkdir(parents=True, exist_ok=True)
        glue.write_text(GLUE + (CUDA_GLUE if self.target.is_gpu else ""))
        sources["glue.cc"] = whole_source(glue)
        return sources
