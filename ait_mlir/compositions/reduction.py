"""Reductions that are more than one op: norms of vectors, logarithms of sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.functions import power
from ait_mlir.dialects.ait.types import tensor_type


def vector_norm(w: Writer, x: SSAValue, axes: Sequence[int], order: float = 2, keep: bool = False) -> SSAValue:
    """(sum of |x| ** order) ** (1 / order) over some axes; with `keep`, they stay as dims of 1.

    For order infinity it is the largest |x|, for -infinity the smallest, for 0 the number of elements that are not 0.
    """
    if order == 2:
        return w.pointwise("sqrt", w.reduce("sum", w.mul(x, x), axes, keep))
    if order == 0:
        return w.reduce("sum", w.cast(w.compare("ne", x, 0), tensor_type(x).element_type), axes, keep)
    size = w.pointwise("abs", x)
    if math.isinf(order):
        return w.reduce("max" if order > 0 else "min", size, axes, keep)
    if order == 1:
        return w.reduce("sum", size, axes, keep)
    return power(w, w.reduce("sum", power(w, size, order), axes, keep), 1 / order)


def logsumexp(w: Writer, x: SSAValue, axes: Sequence[int], keep: bool = False) -> SSAValue:
    """log(sum(exp(x))) over some axes; with `keep`, they stay as dims of 1. exp does not overflow."""
    largest = w.reduce("max", x, axes, keep=True)
    largest = w.where(w.compare("eq", w.pointwise("abs", largest), math.inf), 0, largest)
    total = w.reduce("sum", w.pointwise("exp", w.sub(x, largest)), axes, keep=True)
    y = w.add(w.pointwise("log", total), largest)
    return y if keep else w.reshape(y, [n for a, n in enumerate(tensor_type(x).dims) if a not in axes])


def log_softmax(w: Writer, x: SSAValue, axis: int) -> SSAValue:
    """x - max - log(sum(exp(x - max))) along one axis."""
    low = w.sub(x, w.reduce("max", x, [axis], keep=True))
    return w.sub(low, w.pointwise("log", w.reduce("sum", w.pointwise("exp", low), [axis], keep=True)))
