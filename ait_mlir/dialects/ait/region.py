"""Regions of elementwise ops on scalars: their checks, `ait.yield`, and `ait.fused_elementwise`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, region_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import IsTerminator

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value, check_broadcastable
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.syntax import RegionClause, Syntax
from ait_mlir.dialects.ait.traits import Cost, InPlace, Pure, ReadsAll, ScalarLike
from ait_mlir.dialects.ait.types import TensorType, shape_text


@irdl_op_definition
class YieldOp(AitOp):
    """End a region with its values.

    ```mlir
    ait.yield %a, %b : f32, f32
    ```
    """

    name = "ait.yield"
    TAKES_STORED: ClassVar[bool] = True
    OPERAND_TYPES: ClassVar[str] = "values"

    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, *values: Value) -> None:
        super().__init__(operands=[list(values)])

    def infer_result_types(self) -> ResultTypes:
        return []


def check_region(op: AitOp, region: Region, argument_types: Sequence[Attribute], what: str) -> Block:
    """Raise unless `region` is one block of elementwise ops on scalars with these arguments; return the block."""
    if len(region.blocks) != 1:
        raise op.fail(f"the {what} must have one block, it has {len(region.blocks)}")
    block = region.blocks[0]
    types = tuple(block.arg_types)
    if types != tuple(argument_types):
        want = ", ".join(map(str, argument_types))
        raise op.fail(f"the {what} takes ({', '.join(map(str, types))}), expected ({want})")
    last = block.last_op
    if not isinstance(last, YieldOp):
        raise op.fail(f"the {what} must end with ait.yield")
    for inner in block.ops:
        if inner is not last and not isinstance(inner, ScalarLike) and inner.name != "ait.constant":
            raise op.fail(f"the {what} holds {inner.name}; only elementwise ops and constants are allowed there")
        if any(isinstance(r.type, TensorType) for r in inner.results):
            raise op.fail(f"{inner.name} in the {what} makes a tensor; the {what} works on scalars")
        if any(_block_of(v) is not block for v in inner.operands):
            raise op.fail(f"{inner.name} in the {what} uses a value from outside of it; make it an operand")
    return block


def check_yield(op: AitOp, terminator: Operation | None, types: Sequence[Attribute]) -> None:
    """Raise unless the terminator yields values of these types."""
    found = () if terminator is None else tuple(terminator.operand_types)
    if found != tuple(types):
        want = ", ".join(map(str, types))
        raise op.fail(f"the region yields ({', '.join(map(str, found))}), expected ({want})")


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


@irdl_op_definition
class FusedElementwiseOp(ReadsAll, InPlace, Cost, PureOp):
    """Several elementwise ops in one pass over memory, with one or more results of one shape.

    Block arguments are the operands' elements in their compute type; each yield is rounded once to its result's
    element type.

    ```mlir
    %y = ait.fused_elementwise(%a, %b) {
    ^bb0(%0: f32, %1: f32):
      %2 = ait.add %0, %1 : f32
      %3 = ait.relu %2 : f32
      ait.yield %3 : f32
    } : !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.fused_elementwise"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (RegionClause("inputs"),)
    WORK: ClassVar[int] = 0

    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def()

    def __init__(self, inputs: Sequence[SSAValue], result_types: Sequence[Attribute], body: Region) -> None:
        super().__init__(operands=[inputs], result_types=[result_types], regions=[body])

    def infer_result_types(self) -> ResultTypes:
        inputs = [self.expect_tensor(v, f"operand {i}") for i, v in enumerate(self.operands)]
        outputs = [self.expect_tensor(v, f"result {i}") for i, v in enumerate(self.results)]
        if not outputs:
            raise self.fail("needs at least one result")
        block = check_region(self, self.body, [compute_type(t.element_type) for t in inputs], "region")
        check_yield(self, block.last_op, [compute_type(t.element_type) for t in outputs])
        shape = outputs[0].dims
        for i, t in enumerate(outputs):
            if t.dims != shape:
                raise self.fail(f"result {i} has shape {shape_text(t.dims)}, but result 0 has {shape_text(shape)}")
        for i, t in enumerate(inputs):
            check_broadcastable(self, f"operand {i}", t.dims, shape)
        return [TensorType.get(shape, t.element_type) for t in outputs]
