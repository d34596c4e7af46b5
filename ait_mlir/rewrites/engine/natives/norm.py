"""Residual sums computed by the norm that reads them."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import AddOp, YieldOp
from ait_mlir.dialects.ait.norm import NormOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import SliceOp
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.regions import RegionGrower, take_region
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.numbers import element_type_of


@NATIVES
def add_to_prologue(r: Rewriter, x: SSAValue, residual: SSAValue, total: SSAValue, root: NormOp) -> None:
    """Let a norm read x and start its prologue with x + residual; where others use the sum, it is a further result.

    `total` is that sum, which the norm reads. A norm without a prologue gets one.
    """
    extras = list(root.prologue_operands)
    block = prologue_of(root, element_type_of(x))
    argument = block.args[0]
    grower = RegionGrower(block, extras, first_argument=1)
    grower.scalars[x] = argument
    other = grower.scalar(residual, first=True)
    add = AddOp.create(operands=[argument, other], result_types=[argument.type])
    add.location = root.location
    place = other.owner.next_op if isinstance(other.owner, Operation) else block.first_op
    assert place is not None, "a prologue ends with a yield"
    argument.replace_uses_with_if(add.results[0], lambda use: use.operation is not add)
    block.insert_op_before(add, place)

    types = [result.type for result in root.results]
    others = [use for use in total.uses if use.operation is not root]
    if others:
        grower.finish([*grower.yields(), add.results[0]])
        types.append(total.type)
    scale_and_bias = [value for value in (root.scale, root.bias) if value is not None]
    sizes = [1, int(root.scale is not None), int(root.bias is not None), len(grower.operands)]
    attributes = root.properties | root.attributes | {"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}
    new = r.create(type(root), [x, *scale_and_bias, *grower.operands], types, attributes, [Region(block)])
    for use in others:
        r.push(use.operation)
        use.operation.operands[use.index] = new.results[-1]
    r.replace(root, new.results[: len(root.results)])


def prologue_of(norm: NormOp, element_type: Attribute) -> Block:
    """The block of a norm's prologue, taken from it, or a new one that yields its only argument."""
    if norm.prologue.blocks:
        return take_region(norm).detach_block(0)
    block = Block(arg_types=[compute_type(element_type)])
    block.add_op(YieldOp(block.args[0]))
    return block


# ** whole rows **


@CONSTRAINTS
def keeps_rows_whole(op: SliceOp, norm: NormOp) -> bool:
    """The slice takes all of each row that the norm normalises."""
    axes = norm.axes.value.data
    part, rows = tensor_type(op.output).dims[-axes:], tensor_type(norm.input).dims[-axes:]
    return same_dims(part, rows, scope_of(op))


@NATIVES
def norm_of_slice(r: Rewriter, norm: NormOp, op: SliceOp) -> Operation:
    """The norm of the slice alone."""
    rows = tensor_type(norm.input)
    type_ = TensorType.get(tensor_type(op.output).dims, rows.element_type)
    part = r.create(SliceOp, [norm.input], [type_], {"offsets": op.offsets}).results[0]
    attributes = norm.properties | norm.attributes
    return r.create(type(norm), [part, *norm.operands[1:]], [op.output.type], attributes, [take_region(norm)])


@NATIVES
def on_narrow(r: Rewriter, op: Operation, x: SSAValue) -> Operation:
    """The same function of rows on x, in the type of x."""
    regions = [Region() for _ in op.regions]
    return r.create(type(op), [x], [x.type], op.properties | op.attributes, regions)
