"""Convolutions over two dims, with an optional epilogue region: tensors are [batch, height, width, channels]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.epilogue import EPILOGUE, infer_through_epilogue
from ait_mlir.dialects.ait.syntax import (
    INT,
    INTS,
    Body,
    Kind,
    Operands,
    Prop,
    Syntax,
    int_list,
    int_list_attr,
    parse_int_list,
    print_int_list,
)
from ait_mlir.dialects.ait.traits import ChannelsLast, ContractionExtents, Extents, HasEpilogue, Pure
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, floordiv, product


def window(
    stride: Sequence[int] = (1, 1), pad: Sequence[int] = (0, 0), dilation: Sequence[int] = (1, 1), groups: int = 1
) -> dict[str, Attribute]:
    """The properties of a convolution; `pad` is (height, width) or (top, left, bottom, right)."""
    return {
        "stride": int_list_attr(stride),
        "pad": _around(pad),
        "dilation": int_list_attr(dilation),
        "groups": IntegerAttr(groups, i64),
    }


def _around(pad: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    return int_list_attr((*pad, *pad) if len(pad) == 2 else pad)


def _print_pad(printer: Printer, attribute: Attribute) -> None:
    pad = int_list(attribute)
    print_int_list(printer, pad[:2] if pad[:2] == pad[2:] else pad)


PAD = Kind(lambda parser: _around(int_list(parse_int_list(parser))), _print_pad)
"""`[3, 3]`, `[0, 1, 1, 2]`"""
USUAL = window()
SIZES = {"stride": (2, 1), "pad": (4, 0), "dilation": (2, 1)}
"""For each property, its count of numbers and the smallest value of each number."""


@dataclass(frozen=True)
class Unless(Prop):
    """A property that is omitted if it has its default."""

    def parse(self, parser: Parser, body: Body) -> None:
        body.properties[self.name] = USUAL[self.name]
        Prop(self.name, self.kind, optional=True).parse(parser, body)

    def print(self, printer: Printer, op: Operation) -> None:
        if op.properties[self.name] != USUAL[self.name]:
            super().print(printer, op)


@irdl_op_definition
class Conv2dOp(ChannelsLast, HasEpilogue, ContractionExtents, AitOp):
    """Cross-correlation of x [N, H, W, Cin] with a weight [Cout, KH, KW, Cin / groups]: [N, OH, OW, Cout].

    Each pair is (height, width). `pad` is the number of zeros around x: two numbers for both sides of height and
    width, or four: top, left, bottom, right. Result channel o reads the input channels of group o / (Cout / groups).
    OH is (H + top + bottom - dilation * (KH - 1) - 1) floordiv stride + 1. KH and KW are numbers.

    ```mlir
    %y = ait.conv2d %x, %w stride [2, 2] pad [3, 3] epilogue(%b) {
    ^bb0(%acc: f32, %bias: f32):
      %s = ait.add %acc, %bias : f32
      ait.yield %s : f32
    } : !ait.tensor<batch x 112 x 112 x 64 x f16>
    ```
    """

    name = "ait.conv2d"
    SYNTAX: ClassVar[Syntax] = (
        Operands(("x", "weight")),
        Unless("stride", INTS),
        Unless("pad", PAD),
        Unless("dilation", INTS),
        Unless("groups", INT),
        EPILOGUE,
    )

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    stride = prop_def(ArrayAttr[IntegerAttr])
    pad = prop_def(ArrayAttr[IntegerAttr])
    dilation = prop_def(ArrayAttr[IntegerAttr])
    groups = prop_def(IntegerAttr)
    output = result_def(TensorType)
    traits = traits_def(Pure())

    # ** sizes **

    def strides(self) -> tuple[int, ...]:
        """Steps of the window along height and width."""
        return int_list(self.stride)

    def pads(self) -> tuple[int, ...]:
        """Zeros at the top, left, bottom and right of x."""
        return int_list(self.pad)

    def dilations(self) -> tuple[int, ...]:
        """Distances of neighbours in the window along height and width."""
        return int_list(self.dilation)

    def kernel(self) -> tuple[int, int]:
        """Height and width of the window, in elements of the weight."""
        height, width = (d.as_int() or 0 for d in tensor_type(self.weight).dims[1:3])
        return height, width

    def extents(self) -> Extents:
        """Each group is a product: M are all places of the window, K what is in it."""
        n, height, width, channels = tensor_type(self.output).dims
        groups = self.groups.value.data
        return Extents(
            (const(groups),),
            product([n, height, width]),
            floordiv(channels, groups),
            product(tensor_type(self.weight).dims[1:]),
        )

    def infer_result_types(self) -> Sequence[Attribute]:
        x, w = (self.expect_tensor(self.operands[i], what) for i, what in enumerate(("x", "the weight")))
        if x.rank != 4 or w.rank != 4:
            raise self.fail(
                f"x [N, H, W, Cin] and the weight [Cout, KH, KW, Cin / groups] have 4 dims, "
                f"got {shape_text(x.dims)} and {shape_text(w.dims)}"
            )
        if x.element_type != w.element_type:
            raise self.fail(f"the weight has element type {w.element_type}, but x has {x.element_type}")
        if not is_float(x.element_type):
            raise self.fail(f"needs a floating-point type, got {x.element_type}")
        for clause, (length, least) in SIZES.items():
            found = int_list(self.properties[clause])
            if len(found) != length or min(found) < least:
                count = "2 or 4" if clause == "pad" else "2"
                raise self.fail(f"{clause} is {list(found)}, expected {count} numbers, each at least {least}")
        scope, groups = scope_of(self), self.groups.value.data
        if groups < 1 or not scope.divisible(w.dims[0], groups):
            raise self.fail(f"groups is {groups}, expected a divisor of {w.dims[0]}, the channels of the result")
        if x.dims[3] is not w.dims[3] * groups and not scope.equal(x.dims[3], w.dims[3] * groups):
            raise self.fail(
                f"x has {x.dims[3]} channels, but the weight is for {w.dims[3]} in each of {groups} groups "
                f"(shapes {shape_text(x.dims)} and {shape_text(w.dims)})"
            )
        sizes = [self._places(axis, x.dims[1 + axis], w.dims[1 + axis]) for axis in (0, 1)]
        accumulated = TensorType.get((x.dims[0], *sizes, w.dims[0]), x.element_type)
        return [infer_through_epilogue(self, accumulated)]

    def _places(self, axis: int, size: Expr, window: Expr) -> Expr:
        """The number of positions of the window along height (0) or width (1)."""
        what = ("height", "width")[axis]
        taps = window.as_int()
        if taps is None or taps < 1:
            raise self.fail(f"the {what} of the weight is {window}, expected a number, at least 1")
        reach = self.dilations()[axis] * (taps - 1) + 1
        padded = size + (self.pads()[axis] + self.pads()[2 + axis])
        if not scope_of(self).le(const(reach), padded):
            raise self.fail(f"the window reaches over {reach} along {what}, where x with its pad has {padded}")
        return floordiv(padded - reach, self.strides()[axis]) + 1


OPS = (Conv2dOp,)
