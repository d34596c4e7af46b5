"""Products and convolutions of f32 on the tensor cores, as TF32, executed on the CPU and compared with the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiers
from tests.emulator.library import EmulatedLibrary
from tests.kernels.contractions import attention
from tests.kernels.library_gemm import on_kernel
from tests.kernels.precision import attentions, check_rounded, convolutions, grouped, products

PRODUCTS, CONVOLUTIONS = dict(products()), dict(convolutions())
SAMPLE = [*list(PRODUCTS)[1::4], *list(CONVOLUTIONS)[::6]]
TF32 = 2.0**-11
"""The largest part of a number that rounding it to TF32 changes."""


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_products_and_convolutions(precision: str, tmp_path: Path) -> None:
    cases = tiers.of_tier(PRODUCTS | CONVOLUTIONS, SAMPLE)
    if precision == "medium":  # the same code
        cases = dict(list(cases.items())[:1])
    library = EmulatedLibrary(list(cases.values()), tmp_path, "cuda", precision=precision)
    errors = [check_rounded(library, case, "high") for case in cases.values()]
    assert all("gemm_mma_kernel" in name or "conv_mma_kernel" in name for name in library.executed) and library.executed
    assert max(errors) > TF32 / 64, "no operand was rounded"
    assert max(errors) < TF32, "operands are cut off, not rounded"


def test_attention(tmp_path: Path) -> None:
    """Scores are sums of a few dozen products, and change the weights by as much as they are wrong: four times the bound."""
    cases = tiers.of_tier(attentions(), ("plain", "window", "two"))
    library = EmulatedLibrary(list(cases.values()), tmp_path, "cuda", precision="high")
    errors = [check_rounded(library, case, "high", slack=4) for case in cases.values()]
    assert library.executed and all("attention_mma_kernel" in name for name in library.executed)
    assert TF32 / 64 < max(errors) < 2 * TF32


def test_attention_in_parts(tmp_path: Path) -> None:
    """At the highest setting, a product is the sum of three products of parts of TF32: as exact as plain arithmetic."""
    configs = ({"warps": 2, "cols": 32}, {"warps": 4, "cols": 16}, {"warps": 1, "cols": 64})
    cases = tiers.of_tier(attentions(), ("plain", "causal", "window", "80"))
    plain = [on_kernel(case, "native") for case in cases.values()]
    parts = [on_kernel(case, "native", configs[i % 3]) for i, case in enumerate(cases.values())]
    library = EmulatedLibrary([*plain, *parts], tmp_path, "cuda")
    for before, case in zip(plain, parts, strict=True):
        library.executed.clear()
        bound = check_rounded(library, before, "highest", slack=64)
        assert all("attention_simt_kernel" in name for name in library.executed)
        library.executed.clear()
        assert check_rounded(library, case, "highest", slack=64) <= 1.05 * bound
        assert library.executed and all("attention_mma_kernel" in name for name in library.executed)


def test_groups(tmp_path: Path) -> None:
    found = {name: case for name, case in grouped().items() if "gemm" in name}
    kinds = {name.partition("-")[0]: name for name in found}
    cases = tiers.of_tier(found, kinds.values())
    library = EmulatedLibrary(list(cases.values()), tmp_path, "cuda", precision="high")
    errors = [check_rounded(library, case, "high") for case in cases.values()]
    assert len(kinds) == 2 and TF32 / 64 < max(errors) < TF32


def test_wide_heads_are_exact(tmp_path: Path) -> None:
    """The fragments of 256 columns of f32 do not fit the registers."""
    case = attention("f32", depth="136", width="136", envs=({"b": 1, "s": 5, "l": 9, "d": 1},))
    library = EmulatedLibrary([case], tmp_path, "cuda", precision="high")
    assert check_rounded(library, case, "highest", slack=64) < TF32 / 64
    assert all("attention_simt_kernel" in name for name in library.executed)
