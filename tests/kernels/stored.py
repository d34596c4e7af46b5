"""Cases of stored weights on tensor cores: every tile with every way to unpack and to scale, ends of tiles and of steps."""

from __future__ import annotations

from ait_mlir.lowering.kernels.gemm_stored import TILES
from tests.kernels.library_gemm import ConfiguredCase, on_kernel
from tests.specs.gemm import STORED_GEMM

FORMS = ("columns-8", "columns-4", "group-8", "group-4", "lane-8", "lane-4", "lane-signed")


def stored_cases(few: bool = False) -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; each tile with one of the forms for the emulator, else with two of them,
    and the first tile with all."""
    found: dict[str, ConfiguredCase] = {}
    for i, tile in enumerate(TILES):
        turned = (*FORMS[i % len(FORMS) :], *FORMS[: i % len(FORMS)])
        for j, form in enumerate(turned[:1] if few else turned[::3][:2] if i else FORMS):
            t = ("f16", "bf16")[(i + i // len(FORMS) + j) % 2]
            case = STORED_GEMM.case(STORED_GEMM.find(form), t, few=few)
            name = f"{'x'.join(map(str, tile.values()))}-{form}-{t}"
            found[name] = on_kernel(case, "stream", tile.config(), (1, 2))
    return found
