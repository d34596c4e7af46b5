"""Padding and cropping of any dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, check_expressions
from ait_mlir.dialects.ait.dtypes import integer_range
from ait_mlir.dialects.ait.numbers import Number, literal_values, number_text
from ait_mlir.dialects.ait.syntax import SCALAR, SHAPE, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import AlongDims, Cost
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, minimum

MODES = ("constant", "reflect", "replicate", "circular")


@irdl_op_definition
class PadOp(AlongDims, Cost, PureOp):
    """The input with more or fewer elements around it: the result at i is the input at i - BEFORE, in each dim.

    `before` is the number of elements added before each dim; a negative number crops. The number added after each dim
    follows from the result's shape. Outside of the input are: `constant`, the `value` (0 if it is left out); `reflect`,
    the elements mirrored at the first and the last one, which are not repeated; `replicate`, the first or the last
    element; `circular`, the input again.

    ```mlir
    %y = ait.pad constant %x before [0, 1, 1, 0] value 0.5 : !ait.tensor<batch x 58 x 58 x 64 x f16>
    ```
    """

    name = "ait.pad"
    TAKES_STORED: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (
        Word("mode", MODES),
        Operands(),
        Prop("before", SHAPE),
        Prop("value", SCALAR, optional=True),
    )
    WORK: ClassVar[int] = 0

    mode = prop_def(StringAttr)
    input = operand_def(TensorType)
    before = prop_def(ShapeAttr)
    value = opt_prop_def(IntegerAttr | FloatAttr)
    output = result_def(TensorType)

    def __init__(
        self,
        mode: str,
        input: Value,
        before: Sequence[Expr | int],
        dims: Sequence[Expr | int],
        value: Number | None = None,
    ) -> None:
        result = TensorType.get(dims, tensor_type(SSAValue.get(input)).element_type)
        self.set_up([input], [result], mode=mode, before=before, value=value)

    @property
    def fill(self) -> Number:
        """The value outside of the input, with `constant`."""
        return 0 if self.value is None else literal_values(self.value)[0]

    def behind(self) -> tuple[Expr, ...]:
        """The number of elements added after each dim."""
        sides = zip(tensor_type(self.output).dims, self.before.data, tensor_type(self.input).dims, strict=True)
        return tuple(whole - before - own for whole, before, own in sides)

    def along(self, order: Sequence[int]) -> dict[str, Attribute]:
        before = ShapeAttr(tuple(self.before.data[axis] for axis in order))
        return {**self.properties, "before": before}

    def bytes_read(self, position: int) -> Expr:
        return minimum(super().bytes_read(position), self.bytes_written(0))

    def infer_result_types(self) -> ResultTypes:
        x = self.expect_tensor(self.operands[0], "the input")
        y = self.expect_tensor(self.results[0], "the result")
        mode, before, scope = self.mode.data, self.before.data, scope_of(self)
        if not len(before) == x.rank == y.rank:
            raise self.fail(f"{len(before)} pads and a result of rank {y.rank} for an input of rank {x.rank}")
        check_expressions(self, scope, before, f"before {shape_text(before)}")
        self._check_value(x.element_type)
        if mode != "constant":
            for axis, pads in enumerate(zip(before, self.behind(), strict=True)):
                most = x.dims[axis] - 1 if mode == "reflect" else x.dims[axis]
                for pad in pads:
                    if mode == "replicate" and not scope.le(pad, const(0)) and not scope.le(const(1), most):
                        raise self.fail(
                            f"dim {axis} is {x.dims[axis]}, which is not proved to be at least 1: nothing to replicate"
                        )
                    if mode != "replicate" and pad.as_int() != 0 and not scope.le(pad, most):
                        raise self.fail(
                            f"pads dim {axis} of {shape_text(x.dims)} by {pad}, which is not proved to be at most "
                            f"{most}, as {mode} needs"
                        )
        return [TensorType.get(y.dims, x.element_type)]

    def _check_value(self, element: Attribute) -> None:
        if self.value is None:
            return
        if self.mode.data != "constant":
            raise self.fail(f"value is for constant, not for {self.mode.data}")
        ends = (0, 1) if element == i1 else integer_range(element)
        if ends is not None and not (isinstance(self.fill, int) and ends[0] <= self.fill <= ends[1]):
            raise self.fail(f"value {number_text(self.fill)} does not fit in {element}")


OPS = (PadOp,)
