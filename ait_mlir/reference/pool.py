"""Reference semantics of pooling: each window separately, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import cast

import numpy as np

from ait_mlir.dialects.ait.pool import AdaptivePoolOp, OverlapAddOp, PoolBase, PoolOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference, value_dtype

Window = tuple[Array, int]
"""A window along one dim: the indices of its elements in x, and their number including padding."""


def windows(op: PoolOp, axis: int, size: int, places: int) -> Iterator[Window]:
    """Each window of a `PoolOp` along a spatial dim."""
    before, behind = op.pads()[axis]
    for i in range(places):
        taps = i * op.strides()[axis] - before + np.arange(op.windows()[axis]) * op.dilations()[axis]
        yield taps[(taps >= 0) & (taps < size)], int((taps < size + behind).sum())


def adaptive_windows(size: int, places: int) -> Iterator[Window]:
    """Each window of an `AdaptivePoolOp` along a spatial dim."""
    for i in range(places):
        taps = np.arange(i * size // places, -(-(i + 1) * size // places))
        yield taps, len(taps)


@reference(PoolOp, AdaptivePoolOp)
def _(pool: PoolBase, arrays: Arrays, ev: Evaluation) -> Arrays:
    x = arrays[0]
    shape, sizes = ev.shape(pool.results[0].type), x.shape[1:-1]
    values = np.zeros(shape, x.dtype)
    places = np.zeros(shape, value_dtype(tensor_type(pool.results[-1]).element_type))
    along = [
        list(windows(pool, axis, n, m) if isinstance(pool, PoolOp) else adaptive_windows(n, m))
        for axis, (n, m) in enumerate(zip(sizes, shape[1:-1], strict=True))
    ]
    for index in product(*(range(len(each)) for each in along)):
        found = [each[i] for each, i in zip(along, index, strict=True)]
        taps = np.ix_(*(t for t, _ in found))
        seen = x[(slice(None), *taps)].reshape(x.shape[0], int(np.prod([len(t) for t, _ in found])), x.shape[-1])
        at = (slice(None), *index)
        if pool.kind.data == "mean":
            count = int(np.prod([n for _, n in found]))
            if isinstance(pool, PoolOp) and pool.exclude_pad is not None:
                count = max(seen.shape[1], 1)
            if isinstance(pool, PoolOp) and pool.divisor is not None:
                count = pool.divisor.value.data
            values[at] = seen.sum(1) / count
        elif seen.shape[1]:
            best = _largest(seen)
            values[at] = np.take_along_axis(seen, best[:, None], 1)[:, 0]
            flat = np.ravel_multi_index(taps, sizes).reshape(-1)
            places[at] = flat[best]
        else:
            values[at] = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return (values, places)[: len(pool.results)]


def _largest(seen: Array) -> Array:
    """The index of the largest element along dim 1: the first of equals; with NaN, the last NaN."""
    best = np.argmax(np.where(np.isnan(seen), -np.inf, seen) if seen.dtype.kind == "f" else seen, 1)
    if seen.dtype.kind != "f":
        return best
    nan = np.isnan(seen)
    last = seen.shape[1] - 1 - np.argmax(nan[:, ::-1], 1)
    return cast(Array, np.where(nan.any(1), last, best))


@reference(OverlapAddOp)
def _(op: OverlapAddOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    (x,) = arrays
    y = np.zeros(ev.shape(op.results[0].type), x.dtype)
    strides, dilations, before = op.numbers()
    n = len(strides)
    sizes = [int(size) for size in x.shape[x.ndim - 2 * n :]]
    windows, counts = sizes[:n], sizes[n:]
    for window in np.ndindex(*windows):
        to: list[Array] = []
        inside: list[Array] = []
        for axis, k in enumerate(window):
            places: Array = np.arange(counts[axis]) * strides[axis] + k * dilations[axis] - before[axis]
            known = np.flatnonzero((places >= 0) & (places < y.shape[y.ndim - n + axis]))
            to.append(places[known])
            inside.append(known)
        y[(..., *np.ix_(*to))] += x[(Ellipsis, *window, *(slice(None),) * n)][(..., *np.ix_(*inside))]
    return (y,)
