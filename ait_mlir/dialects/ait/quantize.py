"""Numbers with a scale: quantize, dequantize, and the elements of packed bytes.

A stored number q stands for (q - zero) * scale. The scale and the zero point are tensors: one number, a number for each
row or column, for each group along a dim, or for each block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import bf16, f16, f32, f64, i8, i16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, check_broadcastable, check_expressions
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import f8E4M3FN, f8E5M2, i4, integer_range, is_float, ui4, ui8
from ait_mlir.dialects.ait.syntax import SHAPE, Operand, Operands, Prop, Syntax
from ait_mlir.dialects.ait.traits import Cost, Pure
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, ceildiv, const

QUANTIZED: tuple[Attribute, ...] = (i8, ui8, i16, i4, ui4, f8E4M3FN, f8E5M2)
"""The element types of the results of `ait.quantize`. `ait.dequantize` also takes i32, sums of products of these."""
WIDE: tuple[Attribute, ...] = (f16, bf16, f32, f64)
"""The element types of the numbers that they stand for."""


class ScaledOp(Cost, PureOp):
    """Base of quantize and dequantize."""

    SYNTAX: ClassVar[Syntax] = (
        Operand("input"),
        Operand("scale", "scale"),
        Operand("zero", "zero", optional=True),
        Prop("blocks", SHAPE, optional=True),
    )
    SEGMENTED: ClassVar[bool] = True
    SELF_CONTAINED: ClassVar[bool] = False  # a constant scale is checked
    TAKES_STORED: ClassVar[bool] = True
    STORED: ClassVar[tuple[Attribute, ...]] = QUANTIZED
    """The element types of the stored numbers."""
    WORK: ClassVar[int] = 2

    input = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    blocks = opt_prop_def(ShapeAttr)
    output = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        input: Value,
        scale: Value,
        element_type: Attribute,
        zero: Value | None = None,
        blocks: Sequence[Expr | int] | None = None,
    ) -> None:
        dims = tensor_type(SSAValue.get(input)).dims
        self.set_up([input, scale, zero], [TensorType.get(dims, element_type)], blocks=blocks)

    def block(self) -> tuple[Expr, ...] | None:
        """The sizes of a block along the dims; None if the scale broadcasts."""
        return None if self.blocks is None else self.blocks.data

    def check_types(self, quantized: Attribute, wide: Attribute, which: tuple[str, str]) -> None:
        """Raise unless the two tensors have element types that quantising connects; `which` names them."""
        if quantized not in QUANTIZED:
            raise self.fail(
                f"{which[0]} has element type {quantized}, expected one of {', '.join(map(str, QUANTIZED))}"
            )
        if wide not in WIDE:
            raise self.fail(f"{which[1]} has element type {wide}, expected one of {', '.join(map(str, WIDE))}")
        scale = self.expect_tensor(self.scale, "the scale")
        if not is_float(scale.element_type):
            raise self.fail(f"the scale has element type {scale.element_type}, expected a float")
        self._check_places("the scale", scale)
        self._check_numbers()
        if self.zero is None:
            return
        zero = self.expect_tensor(self.zero, "the zero point")
        if is_float(quantized):
            raise self.fail(f"a zero point is for integers, but {which[0]} is {quantized}; leave out 'zero'")
        if integer_range(zero.element_type) is None:
            raise self.fail(f"the zero point has element type {zero.element_type}, expected an integer")
        if self.blocks is not None and zero.dims != scale.dims:
            raise self.fail(
                f"the zero point has shape {shape_text(zero.dims)}, expected that of the scale, "
                f"{shape_text(scale.dims)}"
            )
        self._check_places("the zero point", zero)

    def _check_places(self, what: str, t: TensorType) -> None:
        """Raise unless a tensor has a number for each block, or broadcasts to the input."""
        x, scope = self.expect_tensor(self.input, "the input"), scope_of(self)
        block = self.block()
        if block is None:
            check_broadcastable(self, what, t.dims, x.dims)
            return
        check_expressions(self, scope, block, "blocks")
        if len(block) != x.rank:
            raise self.fail(f"blocks has {len(block)} sizes for an input of shape {shape_text(x.dims)}")
        if bad := [size for size in block if not scope.le(1, size)]:
            raise self.fail(f"a block has size {bad[0]}, which is not proved to be at least 1")
        want = tuple(blocks_along(dim, size) for dim, size in zip(x.dims, block, strict=True))
        if len(want) != t.rank or not all(scope.equal(a, b) for a, b in zip(want, t.dims, strict=True)):
            raise self.fail(
                f"{what} has shape {shape_text(t.dims)}, expected {shape_text(want)}: a number for each "
                f"block of {shape_text(block)} in {shape_text(x.dims)}"
            )

    def _check_numbers(self) -> None:
        """Raise for a constant scale that no value can have."""
        if not isinstance(owner := self.scale.owner, ConstantOp):
            return
        for number in owner.values():
            if not (number > 0 and math.isfinite(number)):
                raise self.fail(f"the scale is {number}, expected finite numbers above 0")


def blocks_along(dim: Expr, size: Expr) -> Expr:
    """How many blocks of a size a dim has; the last one may be smaller."""
    return const(1) if dim is size else ceildiv(dim, size)


@irdl_op_definition
class QuantizeOp(ScaledOp):
    """The stored numbers of values: x / scale, rounded to the result's type, of two nearest ones to the even one.

    A zero point, an integer, is added to the rounded quotient. Numbers beyond the range of the result's type become its
    end, also infinities. NaN becomes 0 in an integer type, and stays NaN in a float type.

    Without `blocks` the scale and the zero point broadcast to the input, as operands of `ait.mul` do: one number, a
    number for each row, or for each column. `blocks` gives the size of a block along each dim; the scale then has a
    number for each block, and its rank is that of the input.

    ```mlir
    %q = ait.quantize %x scale %s : !ait.tensor<batch x 768 x f8E4M3FN>
    %r = ait.quantize %x scale %t blocks [1, 128] : !ait.tensor<batch x 768 x f8E4M3FN>
    %u = ait.quantize %x scale %s zero %z : !ait.tensor<batch x 768 x ui8>
    ```
    """

    name = "ait.quantize"

    def infer_result_types(self) -> ResultTypes:
        x, y = self.expect_tensor(self.input, "the input"), self.expect_tensor(self.output, "the result")
        self.check_types(y.element_type, x.element_type, ("the result", "the input"))
        return [TensorType.get(x.dims, y.element_type)]


@irdl_op_definition
class DequantizeOp(ScaledOp):
    """The values of stored numbers: (q - zero) * scale.

    The scale, the zero point and `blocks` are those of `ait.quantize`.

    ```mlir
    %y = ait.dequantize %q scale %s : !ait.tensor<batch x 768 x f16>
    %w = ait.dequantize %u scale %t zero %z blocks [1, 128] : !ait.tensor<768 x 3072 x f16>
    ```
    """

    name = "ait.dequantize"
    STORED: ClassVar[tuple[Attribute, ...]] = (*QUANTIZED, i32)

    def infer_result_types(self) -> ResultTypes:
        x, y = self.expect_tensor(self.input, "the input"), self.expect_tensor(self.output, "the result")
        self.check_types(x.element_type, y.element_type, ("the input", "the result"))
        return [TensorType.get(x.dims, y.element_type)]


@irdl_op_definition
class UnpackOp(Cost, PureOp):
    """The numbers of 4 bits in bytes, two of each along the last dim: first that in the lower bits.

    The last dim of the result is twice that of the input, or one less.

    ```mlir
    %q = ait.unpack %bytes : !ait.tensor<768 x 3072 x i4>
    ```
    """

    name = "ait.unpack"
    SYNTAX: ClassVar[Syntax] = (Operands(),)
    TAKES_STORED: ClassVar[bool] = True

    input = operand_def(TensorType)
    output = result_def(TensorType)

    def __init__(self, input: Value, size: Expr | int, element_type: Attribute) -> None:
        dims = tensor_type(SSAValue.get(input)).dims
        self.set_up([input], [TensorType.get((*dims[:-1], size), element_type)])

    def infer_result_types(self) -> ResultTypes:
        x, y = self.expect_tensor(self.input, "the input"), self.expect_tensor(self.output, "the result")
        if x.element_type != ui8 or y.element_type not in (i4, ui4):
            raise self.fail(f"reads i4 or ui4 from ui8, got {y.element_type} from {x.element_type}")
        if not x.rank or y.rank != x.rank:
            raise self.fail(f"the input and the result have one rank of at least 1, got {x.rank} and {y.rank}")
        bytes_, size = x.dims[-1], y.dims[-1]
        if not scope_of(self).equal(ceildiv(size, const(2)), bytes_):
            both = f"{2 * bytes_} or {2 * bytes_ - 1}: {bytes_} bytes of the input hold two each"
            raise self.fail(f"the last dim of the result is {size}, expected {both}")
        return [TensorType.get((*x.dims[:-1], size), y.element_type)]


OPS = (QuantizeOp, DequantizeOp, UnpackOp)
