"""Chunks of 16 bytes: their elements for an operation, and whether it accesses its tensors in whole chunks.

Strides and addresses are not decided yet; only the offsets and strides of views are known. Buffers are aligned.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from ait_mlir.dialects.ait.data import stored
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp
from ait_mlir.dims import Expr, Scope

FAR = 16
"""Most views between a value and its buffer that are followed."""


def chunk_of(op: Operation, others: Sequence[SSAValue] = ()) -> int:
    """The number of elements that a kernel of an elementwise operation with extra operands `others` handles at once: 16
    bytes of the narrowest operand or result, at most 8 elements."""
    values = (*op.operands, *op.results, *others)
    return 16 // max(2, min(BY_IR[tensor_type(value).element_type].bytes for value in values))


def keeps_chunks(op: Operation) -> bool:
    """Whether the rows of an elementwise operation, of its operands and of its results begin at chunk boundaries."""
    scope, count = scope_of(op), chunk_of(op)
    return (
        _whole(tensor_type(op.results[0]).dims, count, scope)
        and all(_read_in_chunks(value, count, scope) for value in op.operands)
        and all(_written_in_chunks(value, count, scope) for value in op.results)
    )


def _whole(dims: Sequence[Expr], count: int, scope: Scope) -> bool:
    """Whether rows consist of whole chunks."""
    return bool(dims) and scope.divisible(dims[-1], count)


def _read_in_chunks(value: SSAValue, count: int, scope: Scope) -> bool:
    view = _seen(value, FAR, scope)
    return view is not None and _in_chunks(view, count, scope)


def _seen(value: SSAValue, far: int, scope: Scope) -> Strided | None:
    """The strided region of a buffer that a value shows through at most `far` views; None if there are more."""
    op = value.owner
    if not isinstance(op, ViewLike) or isinstance(op, ConcatOp):
        return stored(value)
    whole = Strided.whole(tensor_type(value).dims)
    source = _seen(op.operands[0], far - 1, scope) if far else None
    if source is None:
        return None
    assert isinstance(value, OpResult)
    view = op.result_view(value.index, source, scope)
    return whole if view is None else view  # without strides for it, the view becomes a copy


def _in_chunks(view: Strided, count: int, scope: Scope) -> bool:
    """Whether rows begin at chunk boundaries, have one element, or are not contiguous, so that no chunk is read."""
    if not view.dims or view.dims[-1].as_int() == 1 or view.strides[-1].as_int() != 1:
        return True
    steps = [stride for dim, stride in zip(view.dims[:-1], view.strides[:-1], strict=True) if dim.as_int() != 1]
    return all(scope.divisible(step, count) for step in (view.offset, *steps))


def _written_in_chunks(value: SSAValue, count: int, scope: Scope) -> bool:
    for use in value.uses:
        op = use.operation
        if not isinstance(op, ViewLike):
            continue
        place = op.operand_view(use.index, Strided.whole(tensor_type(op.results[0]).dims), scope)
        if place is not None and not _in_chunks(place, count, scope):
            return False
    return True
