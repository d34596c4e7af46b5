"""Reference semantics of cumulative ops."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference
from ait_mlir.reference.reduce import nothing

_STEPS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "logsumexp": np.logaddexp,
}


def cumulative(kind: str, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """Combine, for each element, the elements along `axis` up to it; integers wrap."""
    x = np.flip(x, axis) if reverse else x
    y: Array = _STEPS[kind].accumulate(x, axis, dtype=x.dtype)
    if exclusive:
        first = np.full_like(np.take(y, range(min(1, y.shape[axis])), axis), nothing(kind, x.dtype))
        y = np.concatenate((first, np.take(y, range(y.shape[axis] - 1), axis)), axis)
    return np.flip(y, axis) if reverse else y


@reference(CumulativeOp)
def _(c: CumulativeOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    flags = (c.exclusive is not None, c.reverse is not None)
    return (cumulative(c.kind.data, arrays[0], c.dim.value.data, *flags),)
