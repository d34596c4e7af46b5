"""Norms that are more than one op."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const


def batch_norm(
    w: Writer,
    x: SSAValue,
    mean: SSAValue,
    var: SSAValue,
    gamma: SSAValue | None,
    beta: SSAValue | None,
    eps: float,
    axis: int,
) -> SSAValue:
    """(x - mean) / sqrt(var + eps) * gamma + beta, with statistics and factors of the size of the axis.

    It is computed in the type of the statistics, which may be wider than that of x.
    """
    t, learned = tensor_type(x), tensor_type(mean).element_type
    factor = w.pointwise("rsqrt", w.add(var, eps))
    factor = factor if gamma is None else w.mul(factor, w.cast(gamma, learned))
    offset = w.neg(w.mul(mean, factor))
    offset = offset if beta is None else w.add(offset, w.cast(beta, learned))
    channels = (t.dims[axis], *(const(1) for _ in t.dims[axis + 1 :]))
    scaled = w.mul(w.cast(x, learned), w.reshape(factor, channels))
    return w.cast(w.add(scaled, w.reshape(offset, channels)), t.element_type)
