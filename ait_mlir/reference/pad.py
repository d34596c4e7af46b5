"""Reference semantics of padding: along each dim, an index of the input for each index of the result."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference


def source(mode: str, size: int, before: int, count: int) -> Array:
    """The index of the input for each index of the result along a dim, -1 for none."""
    at = np.arange(count) - before
    if mode == "reflect":
        at = np.abs(at)
        return np.where(at < size, at, 2 * (size - 1) - at)
    if mode == "replicate":
        return np.clip(at, 0, max(size - 1, 0))
    if mode == "circular":
        return at % max(size, 1)
    return np.where((at >= 0) & (at < size), at, -1)


@reference(PadOp)
def _(pad: PadOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    (x,) = arrays
    shape = ev.shape(pad.results[0].type)
    before = [e.evaluate(ev.dims) for e in pad.before.data]
    index = [source(pad.mode.data, n, b, m) for n, b, m in zip(x.shape, before, shape, strict=True)]
    result = np.full(shape, pad.fill, x.dtype)
    inside = np.ix_(*(at >= 0 for at in index))
    result[inside] = x[np.ix_(*(at[at >= 0] for at in index))]
    return (result,)
