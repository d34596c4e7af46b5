"""What resampling means: along each dim by itself, as a product with a matrix of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.resize import TAPS, ResizeOp
from ait_mlir.reference.core import Array, Evaluation, reference

A = -0.75
"""The parameter of the cubic weights."""


def taps(mode: str, size: int, count: int, scale: float, align_corners: bool) -> tuple[Array, Array]:
    """The indices of x and their weights for each element of the result along a dim: [count, taps] both."""
    i = np.arange(count, dtype=np.float64)
    if align_corners:
        at = i * (size - 1) / max(count - 1, 1) if count > 1 else i * 0
    else:
        half = 0.0 if mode == "nearest" else 0.5
        at = (i + half) / scale if scale else (i + half) * size / max(count, 1)
    if TAPS[mode] == 1:
        return np.clip(np.floor(at), 0, size - 1).astype(np.int64)[:, None], np.ones((count, 1))
    if not align_corners:
        at = at - 0.5
    if mode == "linear":
        at = np.clip(at, 0, size - 1)
    first = np.floor(at)
    t = at - first
    if mode == "linear":
        index, weights = [first, first + 1], [1 - t, t]
    else:
        index = [first - 1, first, first + 1, first + 2]
        weights = [_far(t + 1), _near(t), _near(1 - t), _far(2 - t)]
    return np.clip(np.stack(index, 1), 0, size - 1).astype(np.int64), np.stack(weights, 1)


def _near(x: Array) -> Array:
    return ((A + 2) * x - (A + 3)) * x * x + 1


def _far(x: Array) -> Array:
    return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A


@reference("ait.resize")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    resize, result = cast(ResizeOp, op), arrays[0]
    shape = ev.shape(op.results[0].type)
    for axis, scale in enumerate(resize.factors(), 1):
        if shape[axis] == 0:
            return (np.zeros(shape, arrays[0].dtype),)
        index, weights = taps(
            resize.mode.data, result.shape[axis], shape[axis], scale, resize.align_corners is not None
        )
        parts = np.take(result, index, axis)
        if resize.moves_only:
            result = np.take(parts, 0, axis + 1)
        else:
            spread = weights.reshape(*weights.shape, *(1,) * (result.ndim - axis - 1))
            result = (parts * spread).sum(axis + 1)
    return (result,)
