"""Reference semantics of reductions, argmax and top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp, TopkOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, element_type_of, reference, value_dtype


def nothing(kind: str, dtype: np.dtype[Any]) -> Any:
    """The result of a reduction over zero elements."""
    if kind in ("sum", "prod"):
        return int(kind == "prod")
    if dtype.kind == "f":
        return np.inf if kind == "min" else -np.inf
    if dtype.kind == "b":
        return kind == "min"
    return np.iinfo(dtype).max if kind == "min" else np.iinfo(dtype).min


def _together(x: Array, axes: tuple[int, ...]) -> Array:
    """The array with `axes` merged into a last, contiguous dim. NumPy sums contiguous rows pairwise; along other dims
    it sums sequentially, which in float64 can be less exact than the kernels."""
    kept = [a for a in range(x.ndim) if a not in axes]
    count = np.prod([x.shape[a] for a in axes], dtype=np.int64)
    return np.ascontiguousarray(x.transpose(*kept, *axes)).reshape(*(x.shape[a] for a in kept), count)


def _variance(x: Array, axes: tuple[int, ...], correction: int) -> Array:
    """The sum of squared distances from the mean, divided by max(number of elements - correction, 0)."""
    count = np.float64(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    rows = _together(x, axes)
    mean = rows.sum(-1, keepdims=True) / count
    return np.square(rows - mean).sum(-1) / np.maximum(count - correction, 0.0)


def reduce(kind: str, x: Array, axes: tuple[int, ...], correction: int = 0) -> Array:
    """Return `x` reduced over the dims `axes`, which disappear."""
    match kind:
        case "sum":
            return np.asarray(_together(x, axes).sum(-1, dtype=x.dtype))
        case "prod":
            return np.asarray(x.prod(axis=axes, dtype=x.dtype))
        case "mean":
            count = np.float64(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
            return np.asarray(_together(x, axes).sum(-1) / count)
        case "var":
            return np.asarray(_variance(x, axes, correction))
        case _:
            extreme = np.max if kind == "max" else np.min
            return np.asarray(extreme(x, axis=axes, initial=nothing(kind, x.dtype)))


def descending(x: Array) -> Array:
    """The indices that sort the last dim: largest first, NaN before all numbers, equal elements in their order."""
    if x.dtype.kind == "f":
        number = ~np.isnan(x)
        return np.lexsort((np.where(number, -x, 0.0), number), axis=-1)
    return np.argsort(~x, axis=-1, kind="stable")


@reference(ReduceOp)
def _(r: ReduceOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    correction = 0 if r.correction is None else r.correction.value.data
    return (reduce(r.kind.data, arrays[0], r.axes(), correction),)


@reference(ArgmaxOp)
def _(a: ArgmaxOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    places = (np.argmax if a.smallest is None else np.argmin)(arrays[0], axis=a.dim.value.data)
    return (np.asarray(places).astype(value_dtype(element_type_of(a.results[0].type))),)


@reference(TopkOp)
def _(t: TopkOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    rows = np.moveaxis(arrays[0], t.axis, -1)
    order = descending(rows) if t.smallest is None else np.argsort(rows, axis=-1, kind="stable")
    places = order[..., : t.k.value.data]
    kind = BY_IR[element_type_of(t.results[1].type)].name
    values = np.take_along_axis(rows, places, axis=-1)
    return np.moveaxis(values, -1, t.axis), np.moveaxis(places, -1, t.axis).astype(kind)
