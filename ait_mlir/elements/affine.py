"""Constants whose elements are an expression of their index, such as the places that a window reads."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import i64

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Expr, const, total

Affine = tuple[int, tuple[int, ...]]
"""The first element, and the step along each dim."""

_found: WeakKeyDictionary[ConstantOp, Affine | None] = WeakKeyDictionary()


def position_of(op: ConstantOp, index: Sequence[Expr]) -> Expr | None:
    """The element of a constant of i64 at an index, as an expression of the index; None if there is none."""
    if op not in _found:
        _found[op] = _affine(op)
    if (affine := _found[op]) is None:
        return None
    first, steps = affine
    return total([const(first), *(const(step) * i for step, i in zip(steps, index, strict=True))])


def _affine(op: ConstantOp) -> Affine | None:
    t = op.output.type
    shape = t.static_shape() if isinstance(t, TensorType) and t.element_type == i64 else None
    values = op.values() if shape else []
    if not shape or not values or len(values) == 1:
        return None
    steps: list[int] = []
    apart = len(values)
    for size in shape:
        apart //= size
        steps.append(int(values[apart]) - int(values[0]) if size > 1 else 0)
    expected = [int(values[0])]
    for size, step in zip(shape, steps, strict=True):
        expected = [at + i * step for at in expected for i in range(size)]
    return (expected[0], tuple(steps)) if expected == values else None
