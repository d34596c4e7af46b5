"""Reference semantics of resampling: each dim separately, as a product with a matrix of weights."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.resize import TAPS, GridSampleOp, ResizeOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference

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


@reference(ResizeOp)
def _(resize: ResizeOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    result = arrays[0]
    shape = ev.shape(resize.results[0].type)
    for axis, given in enumerate(resize.factors(), 1):
        by_sizes = any(shape[axis] == n * result.shape[axis] for n in resize.kept_by_sizes())
        scale = 0.0 if by_sizes else given
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


def moved(at: Array, outside: str, size: int, align_corners: bool) -> Array:
    """Coordinates along a dim, clamped to x or reflected at its border."""
    at = np.nan_to_num(at, nan=0.0)
    if outside == "reflection":
        low, span = (0.0, 2.0 * (size - 1)) if align_corners else (-0.5, 2.0 * size)
        at = np.abs(at - low) % span if span else at * 0
        at = np.minimum(at, span - at) + low
    return np.clip(at, 0, size - 1)


def grid_taps(op: GridSampleOp, at: Array, size: int) -> tuple[Array, Array]:
    """The indices of x (-1 outside) and their weights for coordinates from -1 to 1; both get a last dim of taps. One
    element has a weight of NaN for a coordinate that is not finite, unless it is moved into x.
    """
    mode, outside, corners = op.mode.data, op.outside.data, op.align_corners is not None
    at = (at + 1) / 2 * (size - 1) if corners else ((at + 1) * size - 1) / 2
    if outside != "zeros" and mode != "cubic":
        at = moved(at, outside, size, corners)
    if mode == "nearest":
        index, weights = [np.rint(at)], [np.ones_like(at)]
    else:
        first = np.floor(at)
        with np.errstate(invalid="ignore"):
            t = at - first
        near = np.where(np.isnan(t), 0, first)
        index, weights = [near, first + 1], [1 - t, t]
        if mode == "cubic":
            index = [first - 1, near, first + 1, first + 2]
            weights = [_far(t + 1), _near(t), _near(1 - t), _far(2 - t)]
            if outside != "zeros":
                index = [moved(i, outside, size, corners) for i in index]
    places = np.stack(index, -1)
    inside = (places >= 0) & (places < size)
    return np.where(inside, places, -1).astype(np.int64), np.where(inside, np.stack(weights, -1), 0.0)


@reference(GridSampleOp)
def _(op: GridSampleOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, grid = arrays
    rows, down = grid_taps(op, grid[..., 1], x.shape[1])
    columns, across = grid_taps(op, grid[..., 0], x.shape[2])
    batch = np.arange(len(x))[:, None, None]
    result = np.zeros(ev.shape(op.results[0].type))
    for i in range(rows.shape[-1]):
        for j in range(columns.shape[-1]):
            weight = (down[..., i] * across[..., j])[..., None]
            inside = (rows[..., i] >= 0) & (columns[..., j] >= 0)
            found = x[batch, rows[..., i], columns[..., j]]
            result += np.where(inside[..., None], weight * found, 0.0)
    return (result,)
