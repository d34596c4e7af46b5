"""Moves elementwise operations before a reshape, where they can join the epilogue of the reshaped product.

Models that convert between images and tokens reshape the result of a convolution or product before they apply an
activation or add a residual.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.elementwise import CastOp, ElementwiseOp
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.rewrites.engine.constraints import same_shape
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.gemm.epilogue import contractions_before, stays_in_type


@pattern()
def elementwise_of_reshape(p: PatternBuilder) -> None:
    """f(reshape(x), y) = reshape(f(x, reshape(y))), where x has only elementwise users and f can join an epilogue"""
    view = p.op("ait.reshape", [p.value()])
    root = p.op(operands=[p.rest(), p.result(view), p.rest()], trait="ScalarLike")
    p.require("is_floating", p.result(root))
    p.require("follows_epilogue", view, root)
    p.require("elementwise_alone_reads", view)
    p.require("moves_before", root, view)
    p.replace(root, "move_before", root, view)


RESHAPED = patterns(elementwise_of_reshape)


# ** constraints and natives **


@constraint
def follows_epilogue(view: ReshapeOp, root: ElementwiseOp) -> bool:
    """The reshape reads the result of an op with an epilogue, directly or through elementwise operations."""
    return any(stays_in_type(op, root) for op in contractions_before(view))


@constraint
def elementwise_alone_reads(view: ReshapeOp) -> bool:
    """All other users of the reshape and of its input are elementwise operations that keep the shape."""
    users = [(use.operation, value) for value in (view.input, view.output) for use in value.uses]
    return all(op is view or (isinstance(op, ElementwiseOp) and same_shape(op.results[0], v)) for op, v in users)


@constraint
def moves_before(root: ElementwiseOp, view: ReshapeOp) -> bool:
    """Each operand of the root can be read in the shape before the reshape without a copy. A cast stays, because other
    patterns move casts after views."""
    return not isinstance(root, CastOp) and all(_before(view, value) is not None for value in root.operands)


@native
def move_before(r: Rewriter, root: ElementwiseOp, view: ReshapeOp) -> Operation:
    """The root computed on operands in the shape before the reshape, followed by the reshape of its result."""
    operands: list[SSAValue] = []
    for operand in root.operands:
        found = _before(view, operand)
        assert found is not None, "move_before needs moves_before"
        value, dims = found
        operands.append(r.reshape(value, dims))
    result = tensor_type(root.results[0])
    moved = TensorType.get(tensor_type(view.input).dims, result.element_type)
    made = r.create(type(root), operands, [moved], root.properties | root.attributes)
    return r.create(ReshapeOp, [made.results[0]], [result])


def _before(view: ReshapeOp, value: SSAValue) -> tuple[SSAValue, Shape] | None:
    """The value, and the shape for it, that replaces an operand when its user moves before the reshape; else None."""
    before, after, dims = tensor_type(view.input).dims, tensor_type(view.output).dims, tensor_type(value).dims
    if same_shape(value, view.output):
        if isinstance(value.owner, ReshapeOp):
            return value.owner.input, before
        return None if isinstance(value.owner, ViewLike) else (value, before)
    while dims and dims[0].as_int() == 1:
        dims = dims[1:]
    if len(dims) > len(before) or not same_dims(
        before[len(before) - len(dims) :], after[len(after) - len(dims) :], scope_of(view)
    ):
        return None
    return value, dims
