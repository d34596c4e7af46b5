"""Growing the scalar regions of fused operations. Regions are moved into the new operation, never cloned."""

from __future__ import annotations

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import CastOp, cast_steps
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.view import filling
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
        """The scalar for an element of a tensor: an earlier scalar, a constant, or a new block argument.

        A new constant comes last in the region, or `first`. A tensor that was cast from a narrow type to the compute
        type of regions is read before the cast: the value is the same.
        """
        known = self.scalars.get(tensor)
        if known is None:
            tensor = narrow_of(tensor)
            known = self.scalars.get(tensor)
        if known is not None:
            return known
        element = element_type_of(tensor)
        if (constant := filling(tensor)) is not None:
            number = splat(constant.output)
            assert number is not None, "the constant has one number"
            scalar = self.add(ConstantOp(number, compute_type(element)), first).results[0]
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
            value = self.add(new).results[0]
        value.name_hint = op.results[0].name_hint if value.name_hint is None else value.name_hint
        self.scalars[op.results[0]] = value
        return value

    def cast(self, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
        """A cast between element types; scalars are in compute types."""
        for step in cast_steps(value.type, source, target):
            value = self.add(CastOp(value, step)).results[0]
        return value

    def yields(self) -> list[SSAValue]:
        """The values that the region yields now; empty without a yield."""
        last = self.block.last_op
        return list(last.operands) if isinstance(last, YieldOp) else []

    def finish(self, values: list[SSAValue]) -> None:
        """Yield these values."""
        last = self.block.last_op
        if isinstance(last, YieldOp):
            last.operands = values
        else:
            self.block.add_op(YieldOp(*values))

    def add(self, op: Operation, first: bool = False) -> Operation:
        """Put an operation on scalars before the yield, or `first` in the region."""
        place = self.block.first_op if first else self.block.last_op
        if place is not None and (first or isinstance(place, YieldOp)):
            self.block.insert_op_before(op, place)
        else:
            self.block.add_op(op)
        return op


def narrow_of(tensor: SSAValue) -> SSAValue:
    """The f16 or bf16 input, if `tensor` is its cast to f32; else `tensor` itself."""
    cast = tensor.owner
    if not isinstance(cast, CastOp):
        return tensor
    source = element_type_of(cast.input)
    is_widened = source != element_type_of(tensor) and compute_type(source) == element_type_of(tensor)
    return cast.input if is_widened else tensor


def take_regions(op: Operation) -> list[Region]:
    """Detach all regions of an operation for the operation that replaces it; empty regions take their place."""
    taken = [op.detach_region(region) for region in list(op.regions)]
    for _ in taken:
        op.add_region(Region())
    return taken


def take_region(op: Operation) -> Region:
    """Detach the only region of an operation for the operation that replaces it."""
    return op.detach_region(op.regions[0])
