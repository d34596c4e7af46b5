"""Rotary position embeddings."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const


def rotated(w: Writer, x: SSAValue, angles: SSAValue, scale: float = 1.0) -> SSAValue:
    """The last elements of each row of x, as many as there are angles, rotated by them in pairs of the two halves
    (arXiv:2104.09864); the elements before them stay. All are multiplied by `scale`.

    x: [..., size]; angles: broadcast to x but for the last dim, of x's type.
    """
    axis = tensor_type(x).rank - 1
    size, count = tensor_type(x).dims[-1], tensor_type(angles).dims[-1]
    half = count // const(2)
    behind = w.slice(x, axis, size - count, count)
    a, b = w.slice(behind, axis, 0, half), w.slice(behind, axis, half, half)
    turned = w.concat([w.neg(b), a], axis)
    result = w.add(w.mul(behind, w.pointwise("cos", angles)), w.mul(turned, w.pointwise("sin", angles)))
    if size is not count:
        result = w.concat([w.slice(x, axis, 0, size - count), result], axis)
    return result if scale == 1 else w.mul(result, scale)
