"""Recurrences: loops over steps of one product with the carried state and one cell, which is a region on scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, check_broadcastable
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.region import check_region, check_yield
from ait_mlir.dialects.ait.syntax import Flag, Group, Operand, PlainRegion, Syntax
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, product


@irdl_op_definition
class RecurrenceOp(Cost, PureOp):
    """Steps of a recurrent layer: a product with the state and a function of each of its elements.

    The states are [B, H]; the first one is h. The weight is [G*H, H], and a step computes the G gates h weight^T,
    [B, H] each. The region maps an element of each gate, of each input and of each state, at one place of [B, H], to
    the new states, and then to elements of the stacked results [S, B, H]. Inputs have three dims and broadcast to
    [S, B, H]; the first one has S steps. Values are in the compute type of their tensors. The results are the states
    after the last step (`init` if S is 0), and the stacked results. `reverse` starts at the last step.

    ```mlir
    %h, %ys = ait.recurrence %w init(%h0) with(%x) {
    ^bb0(%product: f32, %now: f32, %before: f32):
      %s = ait.add %product, %now : f32
      %after = ait.tanh %s : f32
      ait.yield %after, %after : f32, f32
    } : !ait.tensor<b x 64 x f16>, !ait.tensor<seq x b x 64 x f16>
    ```
    """

    name = "ait.recurrence"
    SYNTAX: ClassVar[Syntax] = (
        Operand("weight"),
        Group("init", "init"),
        Group("inputs", "with"),
        Flag("reverse"),
        PlainRegion(),
    )
    SEGMENTED: ClassVar[bool] = True

    weight = operand_def(TensorType)
    init = var_operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    reverse = opt_prop_def(UnitAttr)
    body = region_def()
    outputs = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        weight: Value,
        init: Sequence[SSAValue],
        inputs: Sequence[SSAValue],
        body: Region,
        stacked: Sequence[Attribute],
        reverse: bool = False,
    ) -> None:
        types = [*(v.type for v in init), *stacked]
        self.set_up([weight, init, inputs], [types], [body], reverse=reverse)

    @property
    def steps(self) -> Expr:
        """The number of steps."""
        return tensor_type(self.inputs[0]).dims[0]

    @property
    def batch(self) -> Expr:
        """The rows of a state."""
        return tensor_type(self.init[0]).dims[0]

    @property
    def hidden(self) -> Expr:
        """The columns of a state."""
        return tensor_type(self.init[0]).dims[1]

    @property
    def gates(self) -> int:
        """The number of gates, which the region takes first."""
        return len(self.body.block.args) - len(self.inputs) - len(self.init)

    def infer_result_types(self) -> ResultTypes:
        weight = self.expect_tensor(self.operands[0], "the weight")
        if not self.init:
            raise self.fail("carries no state; init(...) holds h, then further states")
        if not self.inputs:
            raise self.fail("has no inputs; the first one of with(...) has the number of steps")
        states = [self.expect_tensor(v, f"state {i}") for i, v in enumerate(self.init)]
        inputs = [self.expect_tensor(v, f"input {i}") for i, v in enumerate(self.inputs)]
        state, scope = states[0], scope_of(self)
        if state.rank != 2 or not is_float(state.element_type):
            raise self.fail(f"state 0 is {state}, expected [B, H] of floats")
        for i, t in enumerate(states):
            if t.rank != 2 or not all(scope.equal(a, b) for a, b in zip(t.dims, state.dims, strict=True)):
                raise self.fail(f"state {i} has shape {shape_text(t.dims)}, state 0 has {shape_text(state.dims)}")
        for i, t in enumerate(inputs):
            if t.rank != 3:
                raise self.fail(f"input {i} has rank {t.rank}, expected 3: steps, rows, columns")
        shape = (inputs[0].dims[0], *state.dims)
        for i, t in enumerate(inputs):
            check_broadcastable(self, f"input {i}", t.dims, shape)
        if len(self.body.blocks) != 1:
            raise self.fail(f"the region must have one block, it has {len(self.body.blocks)}")
        if self.gates < 1:
            raise self.fail(
                f"the region takes {len(self.body.block.args)} values, expected at least "
                f"{1 + len(inputs) + len(states)}: gates, inputs and states"
            )
        rows = const(self.gates) * state.dims[1]
        if weight.rank != 2 or not scope.equal(weight.dims[0], rows) or not scope.equal(weight.dims[1], state.dims[1]):
            raise self.fail(
                f"the weight has shape {shape_text(weight.dims)}, expected {shape_text((rows, state.dims[1]))} for "
                f"{self.gates} gates"
            )
        if weight.element_type != state.element_type:
            raise self.fail(f"the weight has element type {weight.element_type}, but state 0 has {state.element_type}")
        own = compute_type(state.element_type)
        arguments = [*[own] * self.gates, *(compute_type(t.element_type) for t in (*inputs, *states))]
        block = check_region(self, self.body, arguments, "region")
        stacked = [self.expect_tensor(v, f"result {i}") for i, v in enumerate(self.results)][len(states) :]
        check_yield(self, block.last_op, [compute_type(t.element_type) for t in (*states, *stacked)])
        for i, t in enumerate(stacked):
            if t.rank != 3 or not all(scope.equal(a, b) for a, b in zip(t.dims, shape, strict=True)):
                found, want = shape_text(t.dims), shape_text(shape)
                raise self.fail(f"stacked result {i} has shape {found}, expected {want}: steps, rows, columns")
        return [*states, *stacked]

    def flops(self) -> Expr:
        elements = product([self.steps, self.batch, self.hidden])
        return elements * (const(2 * self.gates) * self.hidden + self.region_ops())


OPS = (RecurrenceOp,)
