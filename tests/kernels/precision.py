"""Cases of f32 at the settings high and medium, for kernels of ours, cuBLASLt and cuDNN, and how exact they must be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.gemm_tiles import TILES
from ait_mlir.lowering.target import Precision
from tests.kernels.contractions import BIAS_GELU, BIAS_RESIDUAL, LAYOUTS, attention, contraction
from tests.kernels.harness import Case, Library, random_inputs, reference
from tests.kernels.library_gemm import on_kernel
from tests.specs.draw import draw

HIGH = Target("cuda", "sm_90a", "high")
MANTISSA: dict[Precision, int] = {"highest": 23, "high": 10, "medium": 7}
"""Bits of the mantissa, without the first one, that operands of products have."""
ENVS = ({"b": 1, "m": 37, "n": 45, "k": 70}, {"b": 2, "m": 1, "n": 4, "k": 8}, {"b": 1, "m": 5, "n": 7, "k": 0})
EVEN = ({"b": 1, "m": 132, "n": 68, "k": 132},)
"""Rows on 16-byte boundaries in each layout."""


def products() -> Iterator[tuple[str, Case]]:
    """Each tile in one layout, and each layout on one tile, with odd and with even pitches."""
    bodies = (("", ()), (BIAS_GELU, ("n",)), (BIAS_RESIDUAL, ("n", "m x n")))
    for i in range(max(len(TILES), 2 * len(LAYOUTS))):
        tile, layout = TILES[i % len(TILES)], LAYOUTS[i % len(LAYOUTS)]
        body, extras = bodies[i % 3] if layout[2] == "r" else bodies[0]
        split = 2 if tile.m * tile.n <= 64 * 64 and i % 2 else 1
        case = contraction(
            "gemm", layout, "f32", EVEN if i % 2 else ENVS, extras=[(e, "f32") for e in extras], body=body
        )
        yield f"{i}-{layout}-{tile.m}x{tile.n}x{tile.k}", on_kernel(case, "native", tile.config() | {"split": split})
    batched = contraction("bmm", "rrr", "f32", ENVS, batch=("b x ",) * 3)
    yield "batched", on_kernel(batched, "native", TILES[7].config())


def convolutions() -> Iterator[tuple[str, Case]]:
    """Each form that mma.sync takes, on one of the tiles."""
    found = {name: d.case for name, d in draw("cuda", ["conv"]).items() if d.type == "f32"}
    for i, (name, case) in enumerate(found.items()):
        kernel = next((k for k in kernels_for(case.op, HIGH) if k.provider == "mma"), None)
        ins, outs = case.args()
        scope = scope_of(case.op)
        if kernel is not None and all(
            kernel.accepts(case.op, j, a.strides, scope) for j, a in enumerate((*ins, *outs))
        ):
            yield f"{i}-{name}", on_kernel(case, "mma", TILES[i % len(TILES)].config())


def grouped() -> dict[str, Case]:
    """Products of groups of rows, and of several matrices, in one launch."""
    return {name: found.case for name, found in draw("cuda", ["grouped"]).items() if found.type == "f32"}


def attentions() -> dict[str, Case]:
    """Heads of even and odd widths, causal, with a window, shared heads, a mask, a second piece, and changed scores."""
    few = ({"b": 1, "s": 37, "l": 70, "d": 24}, {"b": 2, "s": 17, "l": 33, "d": 7}, {"b": 1, "s": 3, "l": 0, "d": 8})
    wide = ({"b": 1, "s": 20, "l": 45, "d": 1},)
    return {
        "plain": attention("f32", envs=few),
        "causal": attention("f32", causal=True, envs=few[:2]),
        "window": attention("f32", window=9, heads=6, envs=few[:2]),
        "mask": attention("f32", mask="b x 1 x s x l", envs=few[:1]),
        "two": attention("f32", then="2", envs=few[:1]),
        "80": attention("f32", depth="80", width="72", envs=wide),
        "128": attention("f32", depth="128", width="128", causal=True, envs=wide),
        "sums": attention("f32", flags="log_sums", envs=few[:2]),
    }


def check_rounded(library: Library, case: Case, precision: Precision, slack: float = 1.0) -> float:
    """Compare with the reference; returns the root mean square of the errors over that of the results.

    Rounding changes an operand by at most 2^-(bits + 1) of it and a product by 2^-bits, of random sign: a sum of products
    of random numbers has an error of at most that part of the largest result, and most often far less.
    """
    errors, sizes = [0.0], [0.0]
    for env in case.envs:
        inputs = random_inputs(case, env)
        for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
            error = np.abs(got.astype(np.float64) - want.astype(np.float64))
            assert np.isfinite(got).all()
            largest = np.abs(want).max(initial=0.0)
            assert error.max(initial=0.0) <= slack * 2.0 ** -MANTISSA[precision] * max(largest, 1.0), env
            errors.append(float(np.square(error).sum()))
            sizes.append(float(np.square(want.astype(np.float64)).sum()))
    return float(np.sqrt(sum(errors) / max(sum(sizes), 1e-30)))
