"""Finds weights. A kernel may request a weight in another layout, because it is reordered once, when it is set."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp
from ait_mlir.dialects.ait_rt.program import KernelOp


def is_weight(value: SSAValue) -> bool:
    """Whether a value consists of params, concatenated along dim 0, and reshaped only so that rows stay rows. Inside of
    a kernel any operand may be a weight."""
    owner = value.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), KernelOp)
    if isinstance(owner, ConcatOp):
        return owner.dim.value.data == 0 and all(isinstance(v.owner, ParamOp) for v in owner.operands)
    if isinstance(owner, ReshapeOp):
        before, after = tensor_type(owner.input), tensor_type(value)
        return before.rank > 1 and before.dims[:1] == after.dims[:1] and is_weight(owner.input)
    return isinstance(owner, ParamOp)
