"""Chunks of 16 bytes: how many elements they have for an operation, and whether what it accesses consists of them.

Strides and addresses are not decided yet; what views say is known. Buffers begin at a boundary.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.traits import View
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, SliceOp, SplitOp
from ait_mlir.dims import Expr, Scope, const, total

FAR = 16
"""Views that are looked through."""


def chunk_of(op: Operation, others: Sequence[SSAValue] = ()) -> int:
    """The elements that a kernel for an elementwise operation, and for further operands, takes at once: those of 16
    bytes of the narrowest operand or result, at most 8."""
    values = (*op.operands, *op.results, *others)
    return 16 // max(2, min(BY_IR[tensor_type(value).element_type].bytes for value in values))


def keeps_chunks(op: Operation) -> bool:
    """Whether rows of an elementwise operation, and of all that it reads and writes, begin where a chunk does."""
    scope, count = scope_of(op), chunk_of(op)
    return (
        _whole(tensor_type(op.results[0]).dims, count, scope)
        and all(_read_in_chunks(value, count, scope) for value in op.operands)
        and all(_written_in_chunks(value, count, scope) for value in op.results)
    )


def _whole(dims: Sequence[Expr], count: int, scope: Scope) -> bool:
    """Whether rows are of whole chunks."""
    return bool(dims) and scope.divisible(dims[-1], count)


def _read_in_chunks(value: SSAValue, count: int, scope: Scope) -> bool:
    for _ in range(FAR):
        op, dims = value.owner, tensor_type(value).dims
        if not isinstance(op, Operation) or not op.has_trait(View) or isinstance(op, ConcatOp):
            return True
        source = tensor_type(op.operands[0]).dims
        if not dims or (dims[-1].as_int() == 1 and not isinstance(op, SliceOp | SplitOp)):
            return True  # one element for each row
        if isinstance(op, PermuteOp) and op.order()[-1] != len(dims) - 1:
            return True  # element by element, whatever the others do
        if isinstance(op, ExpandOp) and source[-1:] != dims[-1:]:
            return True
        if isinstance(op, SliceOp | SplitOp):
            first = op.offsets.data[-1] if isinstance(op, SliceOp) else _offset(op, op.results, value)
            if not _whole(source, count, scope) or not scope.divisible(first, count):
                return False
        value = op.operands[0]
    return False


def _written_in_chunks(value: SSAValue, count: int, scope: Scope) -> bool:
    for use in value.uses:
        op = use.operation
        if isinstance(op, ConcatOp) and not (
            _whole(tensor_type(op.output).dims, count, scope)
            and scope.divisible(_offset(op, op.operands, value), count)
        ):
            return False
    return True


def _offset(op: SplitOp | ConcatOp, parts: Sequence[SSAValue], part: SSAValue) -> Expr:
    """Where in a row the part of a split or concat begins."""
    axis = op.dim.value.data
    if axis != tensor_type(part).rank - 1:
        return const(0)
    before = list(parts)[: next(i for i, other in enumerate(parts) if other is part)]
    return total([tensor_type(other).dims[axis] for other in before])
