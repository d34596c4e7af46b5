"""Convolutions over one to three dims, with an optional epilogue region: tensors are [batch, sizes..., channels]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def, var_result_def
from xdsl.parser import Parser

from ait_mlir.dialects.ait.base import PureOp, ResultTypes
from ait_mlir.dialects.ait.dtypes import accumulator_type, is_byte, is_float
from ait_mlir.dialects.ait.epilogue import EPILOGUE, MAX_RESULTS, infer_results
from ait_mlir.dialects.ait.syntax import (
    INT,
    INTS,
    TF32,
    Body,
    Flag,
    Operands,
    Prop,
    Syntax,
    int_list,
    int_list_attr,
)
from ait_mlir.dialects.ait.traits import ChannelsLast, ContractionExtents, Extents, HasEpilogue
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, const, floordiv, product

MAX_RANK = 3
"""The most dims that a window moves along."""


def window(
    stride: Sequence[int] = (),
    pad: Sequence[int] = (),
    dilation: Sequence[int] = (),
    groups: int = 1,
    transposed: bool = False,
    output_pad: Sequence[int] = (),
    tf32: bool = False,
) -> dict[str, Attribute]:
    """The properties of a convolution; default values are left out.

    Each has one number for each dim; `pad` may have two: first the zeros before each dim, then the zeros after each.
    """
    before, behind = pad[: len(pad) // 2], pad[len(pad) // 2 :]
    if len(pad) > MAX_RANK and tuple(before) == tuple(behind):
        pad = before
    found: dict[str, Attribute] = {
        name: int_list_attr(numbers)
        for name, numbers in (("stride", stride), ("pad", pad), ("dilation", dilation), ("output_pad", output_pad))
        if any(n != USUAL[name] for n in numbers)
    }
    if groups != 1:
        found["groups"] = IntegerAttr(groups, i64)
    if transposed:
        found["transposed"] = UnitAttr()
    if tf32:
        found["tf32"] = UnitAttr()
    return found


USUAL = {"stride": 1, "pad": 0, "dilation": 1, "output_pad": 0, "groups": 1}
"""The default value of each property, for each dim."""
LEAST = {"stride": 1, "pad": 0, "dilation": 1, "output_pad": 0}


class Unusual(Prop):
    """A property, or None if it has its default value."""

    def parse(self, parser: Parser, body: Body) -> None:
        super().parse(parser, body)
        if (found := body.properties.get(self.name)) is not None:
            numbers = [found.value.data] if isinstance(found, IntegerAttr) else int_list(found)
            if all(n == USUAL[self.name] for n in numbers):
                del body.properties[self.name]


@irdl_op_definition
class ConvOp(ChannelsLast, HasEpilogue, ContractionExtents, PureOp):
    """Cross-correlation of x [N, sizes..., Cin] with a weight [Cout, taps..., Cin / groups]: [N, places..., Cout].

    There are one to three spatial dims, the sizes; `stride`, `dilation` and `output_pad` have a number for each. `pad`
    is the number of zeros around x: one number for both sides of each size, or first all numbers before, then all
    after. Result channel o reads the input channels of group o / (Cout / groups). The numbers of taps are integers, not
    dims. Along each size there are (size + pads - dilation * (taps - 1) - 1) floordiv stride + 1 places.

    `transposed` computes the transposed convolution: the result at p * stride - pad + i * dilation is the sum over
    places p and taps i of x at p times tap i. It has (size - 1) * stride - pads + dilation * (taps - 1) + output_pad +
    1 places. The weight has the same dims and is not mirrored.

    x and the weight have one type of floats, or each has integers of 8 bits, i8 or ui8. Products of integers are added
    in i32, which wraps; without an epilogue the result is i32.

    With `tf32`, a CUDA card may round operands of f32 to TF32 (10 bits of mantissa); sums are f32.

    ```mlir
    %y = ait.conv %x, %w stride [2, 2] pad [3, 3] epilogue(%b) {
    ^bb0(%acc: f32, %bias: f32):
      %s = ait.add %acc, %bias : f32
      ait.yield %s : f32
    } : !ait.tensor<batch x 112 x 112 x 64 x f16>
    ```
    """

    name = "ait.conv"
    MAX_RESULTS: ClassVar[int] = MAX_RESULTS
    SYNTAX: ClassVar[Syntax] = (
        Operands(("x", "weight")),
        Flag("transposed"),
        TF32,
        Unusual("stride", INTS, optional=True),
        Unusual("pad", INTS, optional=True),
        Unusual("dilation", INTS, optional=True),
        Unusual("output_pad", INTS, optional=True),
        Unusual("groups", INT, optional=True),
        EPILOGUE,
    )

    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    transposed = opt_prop_def(UnitAttr)
    tf32 = opt_prop_def(UnitAttr)
    stride = opt_prop_def(ArrayAttr[IntegerAttr])
    pad = opt_prop_def(ArrayAttr[IntegerAttr])
    dilation = opt_prop_def(ArrayAttr[IntegerAttr])
    output_pad = opt_prop_def(ArrayAttr[IntegerAttr])
    groups = opt_prop_def(IntegerAttr)
    output = result_def(TensorType)
    further = var_result_def(TensorType)

    # ** sizes **

    @property
    def spatial(self) -> int:
        """The number of spatial dims."""
        return tensor_type(self.x).rank - 2

    def strides(self) -> tuple[int, ...]:
        """Steps of the window along each dim."""
        return self._numbers("stride")

    def pads(self) -> tuple[int, ...]:
        """The zeros before each spatial dim of x, then the zeros after each."""
        found = self._numbers("pad")
        return found if len(found) == 2 * self.spatial else (*found, *found)

    def dilations(self) -> tuple[int, ...]:
        """Distances of neighbours in the window along each dim."""
        return self._numbers("dilation")

    def output_pads(self) -> tuple[int, ...]:
        """The places along each dim that a transposed convolution appends after the last place that x reaches."""
        return self._numbers("output_pad")

    def num_groups(self) -> int:
        """The number of groups; a channel of the result reads only channels of its own group."""
        return 1 if self.groups is None else self.groups.value.data

    def is_transposed(self) -> bool:
        """Whether the op is a transposed convolution."""
        return self.transposed is not None

    def kernel(self) -> tuple[int, ...]:
        """Sizes of the window, in elements of the weight."""
        return tuple(d.as_int() or 0 for d in tensor_type(self.weight).dims[1:-1])

    def _numbers(self, name: str) -> tuple[int, ...]:
        found = self.properties.get(name)
        return (USUAL[name],) * self.spatial if found is None else int_list(found)

    def extents(self) -> Extents:
        """Each group is a product: M is the number of window positions, N the channels, K the elements of a window."""
        placed = tensor_type(self.x if self.is_transposed() else self.output)
        channels, taps = tensor_type(self.output).dims[-1], tensor_type(self.weight).dims[1:]
        groups = self.num_groups()
        return Extents((const(groups),), product(placed.dims[:-1]), floordiv(channels, groups), product(taps))

    def infer_result_types(self) -> ResultTypes:
        x, w = (self.expect_tensor(self.operands[i], what) for i, what in enumerate(("x", "the weight")))
        if not 3 <= x.rank <= 2 + MAX_RANK or w.rank != x.rank:
            raise self.fail(
                "x [N, sizes..., Cin] and the weight [Cout, taps..., Cin / groups] have one to three sizes, "
                f"got {shape_text(x.dims)} and {shape_text(w.dims)}"
            )
        are_bytes = is_byte(x.element_type) and is_byte(w.element_type)
        if x.element_type != w.element_type and not are_bytes:
            raise self.fail(f"the weight has element type {w.element_type}, but x has {x.element_type}")
        if not are_bytes and not is_float(x.element_type):
            raise self.fail(f"needs a floating-point type, or integers of 8 bits, got {x.element_type}")
        self._check_numbers()
        scope, groups = scope_of(self), self.num_groups()
        if groups < 1 or not scope.divisible(w.dims[0], groups):
            raise self.fail(f"groups is {groups}, expected a divisor of {w.dims[0]}, the channels of the result")
        if x.dims[-1] is not w.dims[-1] * groups and not scope.equal(x.dims[-1], w.dims[-1] * groups):
            raise self.fail(
                f"x has {x.dims[-1]} channels, but the weight is for {w.dims[-1]} in each of {groups} groups "
                f"(shapes {shape_text(x.dims)} and {shape_text(w.dims)})"
            )
        sums = accumulator_type(x.element_type) if are_bytes else x.element_type
        return infer_results(self, TensorType.get(self._result_dims(x.dims, w.dims), sums))

    def _check_numbers(self) -> None:
        for name, least in LEAST.items():
            found, rank = self._numbers(name), self.spatial
            fits = len(found) == rank or (name == "pad" and len(found) == 2 * rank)
            if not fits or min(found) < least:
                count = f"{rank} or {2 * rank}" if name == "pad" else str(rank)
                raise self.fail(f"{name} is {list(found)}, expected {count} numbers, each at least {least}")
        if self.output_pad is not None and not self.is_transposed():
            raise self.fail("output_pad is of transposed convolutions; write pad")
        for extra, stride, dilation in zip(self.output_pads(), self.strides(), self.dilations(), strict=True):
            if extra >= max(stride, dilation):
                raise self.fail(
                    f"output_pad is {extra}, expected less than stride or dilation, {max(stride, dilation)}"
                )

    def _result_dims(self, x: Shape, w: Shape) -> Shape:
        count = self._spread_places if self.is_transposed() else self._places
        return (x[0], *(count(i, x[1 + i], self._reach(i, w[1 + i])) for i in range(self.spatial)), w[0])

    def _reach(self, axis: int, window: Expr) -> int:
        """The number of input elements along a dim from the first tap of a window to the last tap."""
        taps = window.as_int()
        if taps is None or taps < 1:
            raise self.fail(f"the {self._what(axis)} of the weight is {window}, expected a number, at least 1")
        return self.dilations()[axis] * (taps - 1) + 1

    def _places(self, axis: int, size: Expr, reach: int) -> Expr:
        """The number of positions of the window along a dim."""
        pads = self.pads()
        padded = size + (pads[axis] + pads[self.spatial + axis])
        if not scope_of(self).le(const(reach), padded):
            raise self.fail(
                f"the window reaches over {reach} along {self._what(axis)}, where x with its pad has {padded}"
            )
        return floordiv(padded - reach, self.strides()[axis]) + 1

    def _spread_places(self, axis: int, size: Expr, reach: int) -> Expr:
        """The size of the result of a transposed convolution along a dim."""
        pads = self.pads()
        extra = reach + self.output_pads()[axis] - pads[axis] - pads[self.spatial + axis]
        places = (size - 1) * self.strides()[axis] + extra
        if not scope_of(self).le(const(0), places):
            raise self.fail(f"the result has {places} places along {self._what(axis)}, which may be fewer than none")
        return places

    def _what(self, axis: int) -> str:
        return ("depth", "height", "width")[MAX_RANK - self.spatial + axis]


OPS = (ConvOp,)
