"""Reference semantics of sorting and ordering, of searching in sorted rows, and of histograms."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.sorting import HistogramOp, KthValueOp, OrderOp, SearchSortedOp, SortOp
from ait_mlir.reference.core import Arrays, Evaluation, EvaluationError, element_type_of, reference, value_dtype
from ait_mlir.reference.reduce import descending


@reference(SortOp)
def _(s: SortOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    (x,) = arrays
    rows = np.moveaxis(x, s.dim.value.data, -1)
    places = np.argsort(rows, axis=-1, kind="stable") if s.descending is None else descending(rows)
    values = np.take_along_axis(rows, places, axis=-1)
    kind = value_dtype(element_type_of(s.results[1].type))
    return tuple(np.moveaxis(y, -1, s.dim.value.data) for y in (values, places.astype(kind)))


@reference(KthValueOp)
def _(op: KthValueOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    rows = np.moveaxis(arrays[0], op.dim.value.data, -1)
    (k,) = (e.evaluate(ev.dims) for e in op.k.data)
    places = np.argsort(rows, axis=-1, kind="stable")[..., k - 1]
    if op.nan_first is not None:
        nan = np.isnan(rows)
        places = np.where(nan.any(axis=-1), nan.argmax(axis=-1), places)
    values = np.take_along_axis(rows, places[..., None], axis=-1)[..., 0]
    return values, places.astype(value_dtype(element_type_of(op.results[1].type)))


@reference(SearchSortedOp)
def _(op: SearchSortedOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    rows, values = arrays
    right, length = op.right is not None, rows.shape[-1]
    table = rows.reshape(int(np.prod(rows.shape[:-1])), length)
    row = np.zeros(values.shape, np.int64)
    if rows.ndim > 1:
        row += np.arange(len(table)).reshape(*rows.shape[:-1], 1)
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, length)
    while (searching := low < high).any():  # bisection defines a result for unsorted rows, too
        middle = (low + high) // 2
        found = table[row, np.minimum(middle, length - 1)]
        after = ~(found > values) if right else ~(found >= values)
        low = np.where(searching & after, middle + 1, low)
        high = np.where(searching & ~after, middle, high)
    return (low.astype(value_dtype(element_type_of(op.results[0].type))),)


@reference(OrderOp)
def _(op: OrderOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    sizes = [e.evaluate(ev.dims) for e in op.sizes.data]
    keys = np.zeros(np.broadcast_shapes(*(a.shape for a in arrays)), np.int64)
    for index, size in zip(arrays, sizes, strict=True):
        if keys.size and ((index < -size) | (index >= size)).any():
            raise EvaluationError(f"ait.order: indices from {index.min()} to {index.max()} for a dim of {size}")
        keys = keys * size + np.where(index < 0, index + size, index)
    places = np.argsort(keys.reshape(-1), kind="stable")
    return keys.reshape(-1)[places].astype(np.int32), places.astype(np.int32)


@reference(HistogramOp)
def _(op: HistogramOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    bins, ids = op.bins.value.data, arrays[0].astype(np.int64).ravel()
    counts = np.bincount(ids[(ids >= 0) & (ids < bins)], minlength=bins)
    return (counts.astype(value_dtype(element_type_of(op.results[0].type))),)
