"""Every kernel template on tensors whose rows lie more than 2^32 elements apart: no offset in a kernel has 32 bits.

Compiling costs half a second a case, so `make test` runs one case of each family, along its first dim; families of CUDA
and HIP, whose kernels have one source, in turn for one of them. Of a family with thousands of cases each target and each dim
takes others, so that each case is tried once and a test ends within minutes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering.kernels import Target
from tests import tiers
from tests.emulator.corpus import FAMILIES, KINDS
from tests.emulator.far import APART, FarLibrary, far_case
from tests.emulator.library import Kind
from tests.kernels.harness import CPU, Case

FEW = 1
"""Cases of a family in `make test`."""
MOST = 1300
"""As many cases of a family are compiled for one target and one dim."""
LEFT_OUT = {
    "masked": "its check looks behind the results, where no memory is",
    "cumulative-chained": "its kernels take row-major tensors only",
    "scatter-ordered": "its check runs the kernel of an order beside each case",
}
RUNS = [
    (kind, name, number)
    for name, family in FAMILIES.items()
    for kind in KINDS
    for number in (0, 1)
    if kind in family.templates and name.removesuffix(f"-{kind}") not in LEFT_OUT
]


BY_NAME = {
    name: [run for run in RUNS if run[1].removesuffix(f"-{run[0]}") == name and run[2] == 0]
    for name in dict.fromkeys(name.removesuffix(f"-{kind}") for kind, name, _ in RUNS)
}
SAMPLED = [found[i % len(found)] for i, found in enumerate(BY_NAME.values())]


@pytest.mark.parametrize(("kind", "name", "number"), tiers.params(RUNS, SAMPLED))
def test_family_far_apart(kind: Kind, name: str, number: int, tmp_path: Path) -> None:
    family = FAMILIES[name]
    far = {n: found for n, case in family.make().items() if (found := far_case(case, kind, number)) is not None}
    kept = tiers.one_in(-(-len(far) // MOST) or 1, far, 2 * KINDS.index(kind) + number)
    far = {n: case for n, case in far.items() if n in kept}
    far = tiers.of_tier(far, list(far)[:: max(1, len(far) // FEW)])
    assert far or number > 0
    failures: list[str] = []
    library = FarLibrary(list(far.values()), tmp_path, kind)
    for case_name, case in far.items():
        try:
            family.check(library, case, case_name)
        except (AssertionError, RuntimeError) as error:
            failures.append(f"{case_name}: {str(error).strip()[:300]}")
    assert not failures, f"{len(failures)} of {len(far)} cases:\n" + "\n".join(failures[:10])


KERNEL = """
__global__ void planted_kernel(const float* in, float* out, OFFSET stride) {
  const OFFSET row = static_cast<OFFSET>(blockIdx.x);
  out[row * stride] = in[row * stride];
}
static int32_t k0(const ait::Context& ctx, const float* in, float* out, void*) {
  ait::gpu::LaunchConfig config;
  config.grid = dim3(3), config.block = dim3(1);
  return ait::gpu::launch(ctx, config, planted_kernel, in, out, static_cast<OFFSET>(APART));
}
"""


class PlantedCase(Case):
    """A relu of three positive numbers whose kernel computes offsets in a type of C++."""

    offset_type = "int64_t"

    def code(self, index: int, target: Target = CPU) -> tuple[tuple[str, ...], str]:
        text = KERNEL.replace("OFFSET", self.offset_type).replace("APART", f"{APART}LL")
        return ("ait/gpu/launch.h",), text


@pytest.mark.parametrize("offset_type", ["int64_t", "int32_t", "uint32_t"])
def test_offsets_of_32_bits_are_found(offset_type: str, tmp_path: Path) -> None:
    t = "!ait.tensor<3 x 2 x f32>"
    case = PlantedCase(f'ait.graph @g(%x: {t}) {{\n  %y = ait.relu %x : {t}\n  ait.output "y" %y : {t}\n}}')
    case.strides = {0: (str(APART), "0"), 1: (str(APART), "0")}
    case.offset_type = offset_type
    library = FarLibrary([case], tmp_path, "cuda")
    inputs = [np.array([[1, 1], [2, 2], [3, 3]], np.float32)]
    if offset_type == "int64_t":
        np.testing.assert_array_equal(library.run(case, {}, inputs)[0], inputs[0])
        return
    with pytest.raises(RuntimeError, match="of buffer 0, which has 16"):
        library.run(case, {}, inputs)
