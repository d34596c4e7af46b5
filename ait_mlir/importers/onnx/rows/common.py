"""Helpers of the rows of several families."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import INTEGERS, Affine, Spread
from ait_mlir.compositions.index import broadcast_shapes
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.onnx.call import Call, Tensor, shape_of
from ait_mlir.importers.onnx.known import LONGEST, Known

LARGEST = 1 << 31
"""The largest number of a known tensor that becomes a formula."""


def formula(value: Tensor) -> Affine | None:
    """A tensor as a formula of its indices: one already, or known whole numbers with equal steps along each dim."""
    if not isinstance(value, Known):
        return value if isinstance(value, Affine) else None
    array = value.array
    if value.element not in INTEGERS or not 0 < array.size <= LONGEST:
        return None
    if value.has_dims:
        return Affine.filled(value.dims, value.exprs()[0], value.element) if array.size == 1 else None
    if max(abs(int(array.min())), abs(int(array.max()))) > LARGEST:
        return None
    places = np.indices(array.shape)
    second = [tuple(int(a == axis and n > 1) for a in range(array.ndim)) for axis, n in enumerate(array.shape)]
    first = int(array[(0,) * array.ndim])
    steps = [int(array[place]) - first for place in second]
    if np.any(array != first + np.tensordot(np.array(steps), places, 1)):
        return None
    return Affine(value.dims, tuple(map(const, steps)), const(first), value.element)


def met(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two that broadcast; None if dims of different names meet."""
    ends = zip(a[::-1], b[::-1], strict=False)
    return broadcast_shapes(a, b) if all(x is y or 1 in (x.as_int(), y.as_int()) for x, y in ends) else None


def broadcast(c: Call, values: Sequence[SSAValue] | None = None) -> list[SSAValue]:
    """The inputs of a node whose operands broadcast, unchanged; requires sizes at the same axis to be equal or 1.

    An input that was expanded to the shape of another one is returned as it was before it was expanded.
    """
    found = _inputs(c) if values is None else list(values)
    rank = max((tensor_type(v).rank for v in found), default=0)
    for axis in range(1, rank + 1):
        sizes = [d for v in found if tensor_type(v).rank >= axis and (d := tensor_type(v).dims[-axis]).as_int() != 1]
        for size in sizes[1:]:
            c.same(sizes[0], size)
    return found


def _inputs(c: Call) -> list[SSAValue]:
    given = [c.value(i) for i in range(len(c.inputs))]
    whole = next((shape_of(v) for v in given if isinstance(v, SSAValue)), None)
    small = [isinstance(v, Spread) and whole is not None and met(v.dims, whole) == whole for v in given]
    return [c.natural(i) if is_small else c.tensor(i) for i, is_small in enumerate(small)]


def spatial(c: Call, name: str, rank: int, usual: int) -> list[int]:
    """An attribute with a number for each spatial dim."""
    found = c.int_list(name, default=[usual] * rank)
    if found is None or len(found) != rank:
        raise c.w.unsupported(f"attribute {name} is {found}, expected {rank} numbers")
    return found
