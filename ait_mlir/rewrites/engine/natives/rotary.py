"""Rotary position embeddings: tables whose halves are equal, and halves of what is rotated."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp, SliceOp
from ait_mlir.dims import const
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.natives.views import reshape


@CONSTRAINTS
def is_half(op: SliceOp, which: IntegerAttr) -> bool:
    """The slice is the first (0) or second (1) half of the last dim, and whole in the others."""
    scope, part = scope_of(op), tensor_type(op.output)
    *outer, last = tensor_type(op.input).dims
    size = part.dims[-1]
    if not same_dims(part.dims[:-1], tuple(outer), scope) or not scope.equal(size * 2, last):
        return False
    start = op.offsets.data[-1]
    return scope.equal(start, size if which.value.data else const(0))


@NATIVES
def on_operand(r: Rewriter, op: Operation, operand: SSAValue) -> Operation:
    """The same elementwise operation on another operand."""
    element = tensor_type(op.results[0]).element_type
    result = TensorType.get(tensor_type(operand).dims, element)
    return r.create(type(op), [operand], [result], op.properties | op.attributes)


@NATIVES
def reshape_rows(r: Rewriter, like: ReshapeOp, value: SSAValue) -> Operation:
    """The value in the leading dims of a reshape's result, its last dim kept."""
    return reshape(r, value, (*tensor_type(like.output).dims[:-1], tensor_type(value).dims[-1]))


@NATIVES
def concat_last(r: Rewriter, a: SSAValue, b: SSAValue) -> Operation:
    """Two values end to end along their last dim."""
    return r.create(ConcatOp, [a, b], None, {"dim": IntegerAttr(tensor_type(a).rank - 1, i64)})
