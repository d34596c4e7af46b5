"""Cases on a given kernel. The services that some call are compiled beside them, without the rest of the runtime."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Emission, Kernel, Launch, Target, kernel_of
from tests.kernels.harness import CPU, Case, Library, sources_of

SRC = Path(__file__).parents[2] / "runtime/src"
GLUE = """\
#include <stdio.h>
#include "ait/attention_service.h"
#include "ait/gemm_service.h"
namespace ait::runtime {
const std::vector<std::string>& gemm_library_candidates() {
  static const std::vector<std::string> none;
  return none;
}
const std::vector<std::string>& attention_library_candidates() {
  static const std::vector<std::string> none;
  return none;
}
}  // namespace ait::runtime
extern "C" int32_t ait_test_gemm(void* self, const ait_gemm_v1* args, void* stream) {
  std::string error;
  const int32_t status = ait::runtime::library_gemm(args, stream, &error);
  if (status != 0) snprintf(static_cast<char*>(self), 512, "%s", error.c_str());
  return status;
}
"""
CPU_GLUE = """\
#include <omp.h>
namespace ait::runtime {
int num_threads() { return omp_get_max_threads(); }
}  // namespace ait::runtime
"""
CUDA_GLUE = """\
#include <cuda_runtime_api.h>
extern "C" void* ait_test_workspace() {
  static void* const made = [] {
    void* bytes = nullptr;
    return cudaMalloc(&bytes, 64 << 20) == cudaSuccess ? bytes : nullptr;
  }();
  return made;
}
extern "C" int32_t ait_test_attention(void* self, const ait_attention_v1* args, void* stream) {
  std::string error;
  const int32_t status = ait::runtime::library_attention(args, stream, &error);
  if (status != 0) snprintf(static_cast<char*>(self), 512, "%s", error.c_str());
  return status;
}
"""
SERVICELESS = "{1, message, nullptr, test_fail}"
SERVICES = {
    "openblas": "{1, message, ait_test_gemm, test_fail, nullptr}",
    "cublaslt": "{1, message, ait_test_gemm, test_fail, nullptr}",
    "cudnn": "{AIT_SERVICES_VERSION, message, nullptr, test_fail, ait_test_attention}",
}


class ConfiguredCase(Case):
    """A case on the kernel of `provider` with the configuration `config`."""

    provider = "native"
    config: Mapping[str, int] = {}

    def chosen(self, target: Target) -> tuple[Kernel, Mapping[str, int]]:
        return kernel_of(self.provider, self.op, target), self.config

    def code(self, index: int, target: Target = CPU) -> tuple[tuple[str, ...], str]:
        kernel, _ = self.chosen(target)
        ins, outs = self.args()
        dims = {name: f"d{i}" for i, name in enumerate(self.dims())}
        emission = kernel.emit(Launch(self.op, ins, outs, dims, self.config, target))
        assert isinstance(emission, Emission)
        pointers = [f"{'const ' if a in ins else ''}{BY_IR[a.type.element_type].cpp}* {a.name}" for a in (*ins, *outs)]
        parameters = ", ".join([*pointers, "void* ws", *(f"int64_t {d}" for d in dims.values())])
        body = emission.body.replace("@ID@", str(index))
        if self.provider != "cudnn":
            body = body.replace("args.workspace_bytes = ", "args.workspace_bytes = 0 * ")
        unused = "".join(f" (void){d};" for d in dims.values())
        code = [
            'extern "C" int32_t ait_test_gemm(void*, const ait_gemm_v1*, void*);',
            'extern "C" int32_t ait_test_attention(void*, const ait_attention_v1*, void*);',
            'extern "C" void* ait_test_workspace();',
            emission.definitions.replace("@ID@", str(index)),
            f"static int32_t k{index}(const ait::Context& ctx, {parameters}) {{\n  (void)ws;{unused}\n  {body}}}",
        ]
        return emission.includes, "\n".join(code)

    def entry(self, index: int) -> str:
        text = super().entry(index)
        if self.provider not in SERVICES:
            return text
        assert SERVICELESS in text
        text = text.replace(SERVICELESS, SERVICES[self.provider])
        own = f"buffers[{len(self.op.operands) + len(self.op.results)}]"
        return text.replace(own, "ait_test_workspace()") if self.provider == "cudnn" else text


def on_kernel(
    case: Case, provider: str, config: Mapping[str, int] | None = None, constants: Sequence[int] = ()
) -> ConfiguredCase:
    """The same case on the kernel of `provider`."""
    made = ConfiguredCase(case.text, case.envs, case.strides, case.offset, constants=constants)
    made.provider, made.config = provider, config or {}
    return made


def whole_source(path: Path) -> str:
    """A source of the runtime with the headers of its folder inside."""

    def included(found: re.Match[str]) -> str:
        header = path.parent / found.group(1)
        return whole_source(header) if header.exists() else found.group()

    return re.sub(r'^#include "([^"]+)"$', included, path.read_text(), flags=re.MULTILINE)


class GemmLibrary(Library):
    """The compiled cases with the service that they call."""

    def __init__(self, cases: Sequence[Case], workdir: Path, target: Target = CPU) -> None:
        files = ("cuda/cublaslt.cc", "cuda/cudnn.cc") if target.is_gpu else ("cpu/openblas.cc",)
        sources = sources_of(cases, target, 16 if target.is_gpu else 64)
        sources |= {Path(file).name: whole_source(SRC / file) for file in files}
        sources["glue.cc"] = GLUE + (CUDA_GLUE if target.is_gpu else CPU_GLUE)
        self.target = target
        self.index = {id(case): i for i, case in enumerate(cases)}
        self.lib = ctypes.CDLL(str(build_library(sources, target, workdir)))
