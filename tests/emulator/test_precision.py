"""Products and convolutions of f32 on the tensor cores, as TF32, executed on the CPU and compared with the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiers
from tests.emulator.library import EmulatedLibrary
from tests.kernels.precision import check_rounded, convolutions, products

PRODUCTS, CONVOLUTIONS = dict(products()), dict(convolutions())
SAMPLE = [*list(PRODUCTS)[1::3], *list(CONVOLUTIONS)[::4]]
TF32 = 2.0**-11
"""The largest part of a number that rounding it to TF32 changes."""


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_products_and_convolutions(precision: str, tmp_path: Path) -> None:
    cases = tiers.of_tier(PRODUCTS | CONVOLUTIONS, SAMPLE)
    if precision == "medium":  # the same code
        cases = dict(list(cases.items())[:1])
    library = EmulatedLibrary(list(cases.values()), tmp_path, "cuda", precision=precision)
    library.note_executed()
    library.executed.clear()
    errors = [check_rounded(library, case, "high") for case in cases.values()]
    assert all("gemm_mma_kernel" in name or "conv_mma_kernel" in name for name in library.executed) and library.executed
    assert max(errors) > TF32 / 64, "no operand was rounded"
    assert max(errors) < TF32, "operands are cut off, not rounded"
