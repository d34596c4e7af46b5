"""Cases of products with scales of blocks on tensor cores: every tile, ends of tiles, of groups and of blocks."""

from __future__ import annotations

from ait_mlir.lowering.kernels.gemm_hopper import SHORT_SUM_TILES
from ait_mlir.lowering.kernels.gemm_tiles import TILES
from tests.kernels.library_gemm import ConfiguredCase, on_kernel
from tests.specs.gemm import FLOATS8, SCALED_GEMM

FORMS = {"blocks": 128, "half": 128, "long": 64, "odd-columns": 128, "numbers": 128}
"""Forms of the specification, and the columns of a block of theirs."""


def scaled_cases(few: bool = False) -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; each tile that divides a block with one of the forms that it fits, and
    all forms on the first tile of each kernel."""
    found: dict[str, ConfiguredCase] = {}
    tiles = {
        "hopper": [tile for tile in SHORT_SUM_TILES if 128 % tile.n == 0],
        "mma": [tile for tile in TILES if 128 % tile.n == 0 and 64 % tile.k == 0],
    }
    for provider, own in tiles.items():
        for i, tile in enumerate(own):
            forms = [form for form, block in FORMS.items() if block % tile.n == 0]
            for j, form in enumerate(forms if i == 0 else [forms[i % len(forms)]]):
                t = FLOATS8[(i + j) % 2]
                case = SCALED_GEMM.case(SCALED_GEMM.find(form), t, few=few)
                name = f"{provider}-{'x'.join(map(str, tile.values()))}-{form}-{t}"
                found[name] = on_kernel(case, provider, tile.config(), (1,))
    return found
