"""Cases on a given kernel. The library gemm that some call is compiled beside them, without the rest of the runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target, kernel_of
from tests.kernels.harness import CPU, Case, Library, sources_of

SRC = Path(__file__).parents[2] / "runtime/src"
GLUE = """\
#ifdef _OPENMP
#include <omp.h>
#else
inline int omp_get_max_threads() { return 1; }
#endif
#include <stdio.h>
#include "ait/gemm_service.h"
namespace ait::runtime {
const std::vector<std::string>& gemm_library_candidates() {
  static const std::vector<std::string> none;
  return none;
}
int num_threads() { return omp_get_max_threads(); }
}  // namespace ait::runtime
extern "C" int32_t ait_test_gemm(void* self, const ait_gemm_v1* args, void* stream) {
  std::string error;
  const int32_t status = ait::runtime::library_gemm(args, stream, &error);
  if (status != 0) snprintf(static_cast<char*>(self), 512, "%s", error.c_str());
  return status;
}
"""


class ConfiguredCase(Case):
    """A case on the kernel of `provider` with the configuration `config`."""

    provider = "native"
    config: Mapping[str, int] = {}

    def code(self, index: int, target: Target = CPU) -> tuple[tuple[str, ...], str]:
        kernel = kernel_of(self.provider, self.op, target)
        ins, outs = self.args()
        dims = {name: f"d{i}" for i, name in enumerate(self.dims())}
        emission = kernel.emit(self.op, ins, outs, dims, self.config, target)
        pointers = [f"{'const ' if a in ins else ''}{BY_IR[a.type.element_type].cpp}* {a.name}" for a in (*ins, *outs)]
        parameters = ", ".join([*pointers, "void* ws", *(f"int64_t {d}" for d in dims.values())])
        body = emission.body.replace("@ID@", str(index))
        body = body.replace("args.workspace_bytes = ", "args.workspace_bytes = 0 * ")
        unused = "".join(f" (void){d};" for d in dims.values())
        code = [
            'extern "C" int32_t ait_test_gemm(void*, const ait_gemm_v1*, void*);',
            emission.definitions.replace("@ID@", str(index)),
            f"static int32_t k{index}(const ait::Context& ctx, {parameters}) {{\n  (void)ws;{unused}\n  {body}}}",
        ]
        return emission.includes, "\n".join(code)

    def entry(self, index: int) -> str:
        text = super().entry(index)
        return text if self.provider in ("native", "hopper", "mfma") else text.replace("message, nullptr,", "message, ait_test_gemm,")


def on_kernel(
    case: Case, provider: str, config: Mapping[str, int] | None = None, constants: Sequence[int] = ()
) -> ConfiguredCase:
    """The same case on the kernel of `provider`."""
    made = ConfiguredCase(case.text, case.envs, case.strides, case.offset, constants=constants)
    made.provider, made.config = provider, config or {}
    return made


class GemmLibrary(Library):
    """The compiled cases with the service that they call."""

    def __init__(self, cases: Sequence[Case], workdir: Path, target: Target = CPU) -> None:
        service = SRC / ("cuda/cublaslt.cc" if target.is_gpu else "cpu/openblas.cc")
        text = service.read_text()
        for header in service.parent.glob("*_api.h"):
            text = text.replace(f'#include "{header.name}"', header.read_text())
        sources = sources_of(cases, target, 16 if target.is_gpu else 64) | {"service.cc": text, "glue.cc": GLUE}
        self.target = target
        self.index = {id(case): i for i, case in enumerate(cases)}
        self.lib = ctypes.CDLL(str(build_library(sources, target, workdir)))
