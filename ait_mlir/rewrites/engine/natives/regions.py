"""Growing the scalar regions of fused operations. Regions are moved into the new operation, never cloned."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import CastOp, ElementwiseOp, YieldOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.traits import Commutative
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.numbers import element_type_of, splat


class RegionGrower:
    """Adds tensor-level elementwise operations to the block of a region on scalars.

    `scalars` maps tensors to the scalars that stand for their elements; `operands` lists the tensors that became block
    arguments, in their order.
    """

    def __init__(self, block: Block, tensors: list[SSAValue], first_argument: int = 0) -> None:
        self.block = block
        self.operands = tensors
        self.scalars: dict[SSAValue, SSAValue] = dict(zip(tensors, block.args[first_argument:], strict=True))

    def scalar(self, tensor: SSAValue, first: bool = False) -> SSAValue:
        """The scalar for an element of a tensor: known, a constant, or a new block argument.

        A new constant stands last in the region, or `first`.
        """
        known = self.scalars.get(tensor)
        if known is not None:
            return known
        element = element_type_of(tensor)
        number = splat(tensor)
        if number is not None:
            scalar = self._add(ConstantOp(number, compute_type(element)), first).results[0]
        else:
            scalar = self.block.insert_arg(compute_type(element), len(self.block.args))
            self.operands.append(tensor)
        scalar.name_hint = tensor.name_hint
        self.scalars[tensor] = scalar
        return scalar

    def compute(self, op: Operation) -> SSAValue:
        """The scalar for an element of an elementwise operation's result, computed in the region."""
        operands = [self.scalar(operand) for operand in op.operands]
        element = element_type_of(op.results[0])
        if isinstance(op, CastOp):
            value = self.cast(operands[0], element_type_of(op.input), element)
        else:
            new = type(op).create(operands=operands, result_types=[compute_type(element)], properties=op.properties)
            new.location = op.location
            value = self._add(new).results[0]
        value.name_hint = op.results[0].name_hint if value.name_hint is None else value.name_hint
        self.scalars[op.results[0]] = value
        return value

    def cast(self, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
        """A cast between element types. Values here are in compute types: narrowing floats rounds and widens again."""
        narrow = isinstance(target, Float16Type | BFloat16Type)
        if narrow and source != target:
            value = self._add(CastOp(value, target)).results[0]
        if value.type != compute_type(target):
            value = self._add(CastOp(value, compute_type(target))).results[0]
        return value

    def yields(self) -> list[SSAValue]:
        """What the region yields now."""
        last = self.block.last_op
        return list(last.operands) if isinstance(last, YieldOp) else []

    def finish(self, values: list[SSAValue]) -> None:
        """Yield these values."""
        last = self.block.last_op
        if isinstance(last, YieldOp):
            last.operands = values
        else:
            self.block.add_op(YieldOp(*values))

    def _add(self, op: Operation, first: bool = False) -> Operation:
        place = self.block.first_op if first else self.block.last_op
        if place is not None and (first or isinstance(place, YieldOp)):
            self.block.insert_op_before(op, place)
        else:
            self.block.add_op(op)
        return op


def take_region(op: Operation) -> Region:
    """Detach the only region of an operation, to be given to the operation that replaces it."""
    return op.detach_region(op.regions[0])


@NATIVES
def append_to_epilogue(r: Rewriter, contraction: ContractionOp, root: ElementwiseOp) -> Operation:
    """Let an elementwise operation join the epilogue of the contraction it uses; returns the new contraction.

    The accumulator has the compute type of the operands; the yield is rounded once, to the root's element type.
    """
    return append(r, contraction, [root])


def append(r: Rewriter, contraction: ContractionOp, joining: Sequence[ElementwiseOp]) -> Operation:
    """The contraction with these operations at the end of its epilogue, in order; it yields the last.

    What comes from the contraction is the first operand where the order is free: r + x @ w and x @ w + r are one
    program, with one kernel and one time.
    """
    accumulator = contraction.results[0]
    made: set[SSAValue] = {accumulator}
    for op in joining:
        made.update(op.results)
        if op.has_trait(Commutative) and op.operands[0] not in made and op.operands[1] in made:
            op.operands = [op.operands[1], op.operands[0]]
    extras = list(contraction.operands[2:])
    region = take_region(contraction)
    if region.blocks:
        block = region.blocks[0]
        grower = RegionGrower(block, extras, first_argument=contraction.SUMS)
        grower.scalars[accumulator] = grower.yields()[0]
    else:
        block = Block(arg_types=[compute_type(element_type_of(contraction.operands[0]))])
        block.args[0].name_hint = "acc"
        region.add_block(block)
        grower = RegionGrower(block, extras, first_argument=1)
        grower.scalars[accumulator] = block.args[0]
    grower.finish([[grower.compute(op) for op in joining][-1]])
    # The old contraction stays until its only users, which join, are gone; then it is dead.
    contraction.add_region(Region())
    result = joining[-1].results[0].type
    assert isinstance(result, TensorType)
    operands = [*contraction.operands[:2], *grower.operands]
    return r.create(type(contraction), operands, [result], contraction.properties | contraction.attributes, [region])
