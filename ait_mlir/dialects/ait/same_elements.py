"""Whether two values have the same elements, by the ops that make them."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from ait_mlir.dialects.ait.base import PureOp
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, Scope


def have_same_elements(a: SSAValue, b: SSAValue, scope: Scope) -> bool:
    """Whether two tensors have the same elements in row-major order: both are the same view of one value, or of values
    that equal ops compute from operands with the same elements. Dims of 1 make no difference.
    """
    pairs, seen = [(a, b)], set[tuple[SSAValue, SSAValue]]()
    while pairs:
        pair = pairs.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        (one, view), (other, second) = (_source(value, scope) for value in pair)
        if not _are_same(view, second, scope):
            return False
        if one is other:
            continue
        if not isinstance(one, OpResult) or not isinstance(other, OpResult) or one.index != other.index:
            return False
        if not isinstance(one.op, PureOp) or one.op.regions or op_key(one.op) != op_key(other.op):
            return False
        pairs += zip(one.op.operands, other.op.operands, strict=True)
    return True


def _source(value: SSAValue, scope: Scope) -> tuple[SSAValue, Strided]:
    """The value that a tensor is a view of, through as many views as strides describe, and this view."""
    views: list[SSAValue] = []
    while isinstance(value.owner, Operation) and isinstance(value.owner, ViewLike) and value.owner.operands:
        views.append(value)
        value = value.owner.operands[0]
    view = Strided.whole(tensor_type(value).dims)
    for result in reversed(views):
        assert isinstance(result, OpResult) and isinstance(result.op, ViewLike)
        found = result.op.result_view(result.index, view, scope)
        if found is None:
            value, found = result, Strided.whole(tensor_type(result).dims)
        view = found
    return value, view


def _are_same(a: Strided, b: Strided, scope: Scope) -> bool:
    one, other = _merged(a, scope), _merged(b, scope)
    same = len(one) == len(other) and scope.equal(a.offset, b.offset)
    return same and all(scope.equal(*sides) for two in zip(one, other, strict=True) for sides in zip(*two, strict=True))


def _merged(view: Strided, scope: Scope) -> list[tuple[Expr, Expr]]:
    """The sizes and strides of a view with as few dims as possible."""
    found: list[tuple[Expr, Expr]] = []
    for size, stride in zip(view.dims, view.strides, strict=True):
        if size.as_int() == 1:
            continue
        if found and scope.equal(found[-1][1], size * stride):
            size = found.pop()[0] * size
        found.append((size, stride))
    return found
