"""Reference semantics of contractions: a matrix product in float64, or of integers in i32, then the epilogue region on
the whole result."""

from __future__ import annotations

import math

import numpy as np

from ait_mlir.dialects.ait.gemm import (
    BmmOp,
    ContractionOp,
    GatedGemmOp,
    GemmOp,
    RotatedGemmOp,
    ScaledGemmOp,
    StoredGemmOp,
)
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference


def transpose(x: Array) -> Array:
    """Swap the last two dims."""
    return np.swapaxes(x, -1, -2)


def contract(a: Array, b: Array, layout: str) -> Array:
    """Return the product of `a` and `b` in a layout such as `rcr`.

    `a` is [..., M, K] (`r`) or [..., K, M] (`c`), `b` is [..., K, N] (`r`) or [..., N, K] (`c`), the result [..., M,
    N] or [..., N, M].
    """
    a = transpose(a) if layout[0] == "c" else a
    b = transpose(b) if layout[1] == "c" else b
    if b.ndim == 2 and a.ndim > 2:  # one large product is faster than many small ones
        product = np.matmul(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    else:
        product = np.matmul(a, b)
    return transpose(product) if layout[2] == "c" else product


@reference(GemmOp, GatedGemmOp, BmmOp)
def _(gemm: ContractionOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    a, b, *others = arrays
    if a.dtype.kind == "f":
        result = contract(a, b, gemm.layout.data)
    else:  # float64 holds the sums exactly
        whole = contract(a.astype(np.float64), b.astype(np.float64), gemm.layout.data)
        result = whole.astype(np.int64).astype(np.int32)
    if gemm.epilogue.blocks:
        sums = np.split(result, gemm.SUMS, axis=-1)
        results = ev.run_region(gemm.epilogue, [*sums, *others])
    else:
        results = [result]
    return ev.whole(results, gemm)


@reference(StoredGemmOp)
def _(gemm: StoredGemmOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    own = len(gemm.own_operands)
    a, numbers, scale, *zero = arrays[:own]
    if gemm.bits == 4:
        pairs = np.stack([numbers & 15, numbers >> 4], -1).reshape(len(numbers), 2 * numbers.shape[1])
        numbers = pairs[:, : a.shape[1]].astype(np.int8)
        numbers = (numbers ^ 8) - 8 if gemm.is_signed else numbers
    groups = [k // gemm.group.value.data for k in range(a.shape[1])]
    weight = numbers.astype(np.float64)
    if zero:
        weight = weight - zero[0].astype(np.float64)[:, groups]
    result = contract(a, weight * scale[:, groups], "rcr")
    if not gemm.epilogue.blocks:
        return ev.whole([result], gemm)
    return ev.whole(ev.run_region(gemm.epilogue, [result, *arrays[own:]]), gemm)


@reference(ScaledGemmOp)
def _(gemm: ScaledGemmOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    a, b, rows, columns = (x.astype(np.float64) for x in arrays[:4])
    groups = [k // gemm.group.value.data for k in range(a.shape[1])]
    blocks = [n // gemm.block.value.data for n in range(b.shape[0])]
    result = contract(a * rows[:, groups], b * columns[blocks][:, groups], "rcr")
    if not gemm.epilogue.blocks:
        return ev.whole([result], gemm)
    return ev.whole(ev.run_region(gemm.epilogue, [result, *arrays[4:]]), gemm)


@reference(RotatedGemmOp)
def _(gemm: RotatedGemmOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    a, b, cosines, sines = arrays
    result = contract(a, b, "rcr")
    size = gemm.size.value.data
    heads = result[..., : gemm.turned].reshape(*result.shape[:-1], gemm.heads.value.data, size)
    first, second = heads[..., : size // 2], heads[..., size // 2 :]
    cosines, sines = (np.expand_dims(table, -2) for table in (cosines, sines))
    turned = np.concatenate([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
    return (np.concatenate([turned.reshape(*result.shape[:-1], gemm.turned), result[..., gemm.turned :]], axis=-1),)
