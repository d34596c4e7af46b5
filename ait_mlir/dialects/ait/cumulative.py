"""Cumulative ops: each element of the result combines the elements up to it along one dim."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.syntax import INT, Flag, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import AlongDims, RowLike
from ait_mlir.dialects.ait.types import TensorType, shape_text

KINDS = ("sum", "prod", "max", "min", "logsumexp")


@irdl_op_definition
class CumulativeOp(AlongDims, RowLike, PureOp):
    """For each element, the sum, product, largest, smallest or log of the sum of exponentials of the elements up to and
    including it, along a dim. `exclusive` excludes the element itself, `reverse` starts from the last element.

    Max and min are NaN from the first NaN on. Without elements the sum is 0, the product 1, max and min are the limits
    of the element type, and the log of the sum of exponentials is -inf. Integers wrap.

    ```mlir
    %y = ait.cumulative sum %x dim 1 exclusive reverse : !ait.tensor<batch x seq x f32>
    ```
    """

    name = "ait.cumulative"
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", KINDS),
        Operands(),
        Prop("dim", INT),
        Flag("exclusive"),
        Flag("reverse"),
    )

    input = operand_def(TensorType)
    kind = prop_def(StringAttr)
    dim = prop_def(IntegerAttr)
    exclusive = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)
    output = result_def(TensorType)

    def __init__(self, kind: str, input: Value, dim: int, *, exclusive: bool = False, reverse: bool = False) -> None:
        self.set_up([input], kind=kind, dim=dim, exclusive=exclusive, reverse=reverse)

    def infer_result_types(self) -> ResultTypes:
        t, kind = self.expect_tensor(self.operands[0], "the input"), self.kind.data
        if not 0 <= self.dim.value.data < t.rank:
            raise self.fail(f"dim {self.dim.value.data} is out of range for shape {shape_text(t.dims)}")
        if t.element_type == i1:
            raise self.fail(f"{kind} of i1 has no meaning; convert with ait.cast")
        if kind == "logsumexp" and not is_float(t.element_type):
            raise self.fail(f"{kind} needs a floating-point type, got {t.element_type}; convert with ait.cast")
        return [t]


OPS = (CumulativeOp,)
