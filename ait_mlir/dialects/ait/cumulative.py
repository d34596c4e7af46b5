"""Cumulative ops: each element of the result combines the elements up to it along one dim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.syntax import INT, Flag, Operands, Prop, Syntax
from ait_mlir.dialects.ait.traits import Pure, RowLike
from ait_mlir.dialects.ait.types import TensorType, shape_text


@irdl_op_definition
class CumsumOp(RowLike, AitOp):
    """The sum of the elements up to and including each one, along a dim. `exclusive` excludes the element itself,
    `reverse` starts from the last element.

    ```mlir
    %y = ait.cumsum %x dim 1 exclusive reverse : !ait.tensor<batch x seq x f32>
    ```
    """

    name = "ait.cumsum"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT), Flag("exclusive"), Flag("reverse"))

    input = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    exclusive = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)
    output = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self, input: SSAValue | Operation, dim: int, *, exclusive: bool = False, reverse: bool = False
    ) -> None:
        value = SSAValue.get(input)
        flags = {"exclusive": exclusive, "reverse": reverse}
        super().__init__(
            operands=[value],
            properties={"dim": IntegerAttr(dim, i64), **{k: UnitAttr() for k, given in flags.items() if given}},
            result_types=[value.type],
        )
        self.infer_result_types()

    def reduced_axes(self) -> tuple[int, ...]:
        return (self.dim.value.data,)

    def infer_result_types(self) -> Sequence[Attribute]:
        t = self.expect_tensor(self.operands[0], "the input")
        if not 0 <= self.dim.value.data < t.rank:
            raise self.fail(f"dim {self.dim.value.data} is out of range for shape {shape_text(t.dims)}")
        if t.element_type == i1:
            raise self.fail("a sum of i1 has no meaning; convert with ait.cast")
        return [t]


OPS = (CumsumOp,)
