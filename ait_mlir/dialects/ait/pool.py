"""Pooling over windows of the spatial dims: tensors are [batch, one to three spatial dims, channels]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_result_def

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, check_declared, same_shape
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.syntax import INT, INTS, Flag, Operands, Prop, Syntax, Word, int_list, int_list_attr
from ait_mlir.dialects.ait.traits import ChannelsLast, Cost
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, ceildiv, const, floordiv, minimum, product

KINDS = ("max", "mean")
MAX_DIMS = 3
"""The most spatial dims."""


class PoolBase(ChannelsLast, Cost, PureOp):
    """The largest element or the mean of each window, for each channel; with `max` optionally its place, too.

    The optional second result has the places: row-major indices over the spatial dims of x, i32 or i64. Of equal
    elements the first counts. NaN is larger than any number; of several NaN the last counts, as in PyTorch.
    """

    kind = prop_def(StringAttr)
    x = operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def places(self) -> Shape:
        """The number of windows along each spatial dim."""
        return tensor_type(self.outputs[0]).dims[1:-1]

    def expect_input(self) -> TensorType:
        """The type of x; raises if it does not fit the op."""
        x, kind = self.expect_tensor(self.operands[0], "x"), self.kind.data
        if not 3 <= x.rank <= 2 + MAX_DIMS:
            raise self.fail(f"x is [batch, 1 to {MAX_DIMS} spatial dims, channels], got {shape_text(x.dims)}")
        if x.element_type == i1 or (kind == "mean" and not is_float(x.element_type)):
            wanted = "a floating-point type" if kind == "mean" else "numbers"
            raise self.fail(f"{kind} needs {wanted}, got {x.element_type}; convert with ait.cast")
        return x

    def pooled(self, x: TensorType, places: Sequence[Expr]) -> Sequence[Attribute]:
        """The result types: the values, and the places if the op has them."""
        values = TensorType.get((x.dims[0], *places, x.dims[-1]), x.element_type)
        if len(self.outputs) == 1:
            return [values]
        if len(self.outputs) != 2 or self.kind.data != "max":
            raise self.fail(f"has {len(self.outputs)} results; max has values and maybe places, mean has values alone")
        element = self.expect_tensor(self.outputs[1], "the second result").element_type
        if element not in (i32, i64):
            raise self.fail(f"places are i32 or i64, not {element}")
        return [values, TensorType.get(values.dims, element)]


@irdl_op_definition
class PoolOp(PoolBase):
    """Windows of a fixed size, at fixed steps.

    `window`, `stride` and `dilation` have a number for each spatial dim. `pad` has one number for each, or two: first
    the pads before all dims, then the pads after them. A pad is never the largest element; in a mean it is 0. A mean
    divides by the number of elements of the window in x and its pads, with `exclude_pad` by the number in x, or by
    `divisor`. With `ceil` a last window may reach beyond the last pad, if it begins before it.

    ```mlir
    %y = ait.pool max %x window [3, 3] stride [2, 2] pad [1, 1] : !ait.tensor<batch x 56 x 56 x 64 x f16>
    %y, %places = ait.pool max %x window [2, 2] stride [2, 2] ceil : !ait.tensor<...>, !ait.tensor<... x i64>
    ```
    """

    name = "ait.pool"
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", KINDS),
        Operands(),
        Prop("window", INTS),
        Prop("stride", INTS, optional=True),
        Prop("pad", INTS, optional=True),
        Prop("dilation", INTS, optional=True),
        Flag("ceil"),
        Flag("exclude_pad"),
        Prop("divisor", INT, optional=True),
    )

    window = prop_def(ArrayAttr[IntegerAttr])
    stride = opt_prop_def(ArrayAttr[IntegerAttr])
    pad = opt_prop_def(ArrayAttr[IntegerAttr])
    dilation = opt_prop_def(ArrayAttr[IntegerAttr])
    ceil = opt_prop_def(UnitAttr)
    exclude_pad = opt_prop_def(UnitAttr)
    divisor = opt_prop_def(IntegerAttr)

    def windows(self) -> tuple[int, ...]:
        """Elements of a window along each spatial dim."""
        return int_list(self.window)

    def strides(self) -> tuple[int, ...]:
        """Steps between windows along each spatial dim."""
        return (1,) * len(self.windows()) if self.stride is None else int_list(self.stride)

    def dilations(self) -> tuple[int, ...]:
        """Distances of neighbours in a window along each spatial dim."""
        return (1,) * len(self.windows()) if self.dilation is None else int_list(self.dilation)

    def pads(self) -> tuple[tuple[int, int], ...]:
        """The pads before and after each spatial dim."""
        count = len(self.windows())
        numbers = (0,) * count if self.pad is None else int_list(self.pad)
        return tuple(zip(numbers[:count], numbers[-count:], strict=True))

    def elements(self) -> Expr:
        return tensor_type(self.outputs[0]).num_elements() * product(map(const, self.windows()))

    def infer_result_types(self) -> ResultTypes:
        x = self.expect_input()
        rank = x.rank - 2
        self._check_numbers("window", self.windows(), rank, 1)
        self._check_numbers("stride", self.strides(), rank, 1)
        self._check_numbers("dilation", self.dilations(), rank, 1)
        if self.pad is not None:
            pad = int_list(self.pad)
            if len(pad) not in (rank, 2 * rank) or min(pad) < 0:
                raise self.fail(f"pad is {list(pad)}, expected {rank} or {2 * rank} numbers, each at least 0")
        if self.kind.data == "max" and (self.exclude_pad is not None or self.divisor is not None):
            raise self.fail("max divides by nothing; exclude_pad and divisor are for mean")
        if self.divisor is not None and self.divisor.value.data == 0:
            raise self.fail("the divisor is 0")
        return self.pooled(x, [self._places(axis, x.dims[1 + axis]) for axis in range(rank)])

    def _check_numbers(self, clause: str, found: Sequence[int], count: int, least: int) -> None:
        if len(found) != count or min(found) < least:
            raise self.fail(f"{clause} is {list(found)}, expected {count} numbers, each at least {least}")

    def _places(self, axis: int, size: Expr) -> Expr:
        """The number of windows along a spatial dim."""
        reach = self.dilations()[axis] * (self.windows()[axis] - 1) + 1
        step, (before, behind) = self.strides()[axis], self.pads()[axis]
        if max(before, behind) >= reach:
            raise self.fail(
                f"pad is {before}, {behind} of spatial dim {axis}: a window of {reach} would hold pad alone"
            )
        slack = step - 1 if self.ceil is not None else 0
        room = size + (before + behind + slack)
        if not scope_of(self).le(const(reach), room):
            raise self.fail(
                f"a window reaches over {reach} along spatial dim {axis}, where x with its pad has "
                f"{size + (before + behind)}"
            )
        places = floordiv(room - reach, step) + 1
        return minimum(places, ceildiv(size + before, step)) if slack else places


@irdl_op_definition
class AdaptivePoolOp(PoolBase):
    """Windows of about equal size: one for each place of the result, along each spatial dim.

    Window i of n along a dim of size s has the elements from `i * s floordiv n` up to, and excluding,
    `(i + 1) * s ceildiv n`.

    ```mlir
    %y = ait.adaptive_pool mean %x : !ait.tensor<batch x 7 x 7 x 512 x f16>
    ```
    """

    name = "ait.adaptive_pool"
    SYNTAX: ClassVar[Syntax] = (Word("kind", KINDS), Operands())

    def elements(self) -> Expr:
        return tensor_type(self.x).num_elements()

    def infer_result_types(self) -> ResultTypes:
        x = self.expect_input()
        y = self.expect_tensor(self.outputs[0], "the result")
        if y.rank != x.rank:
            raise self.fail(f"the result has shape {shape_text(y.dims)}, expected {x.rank} dims as x has")
        for axis in range(1, x.rank - 1):
            if not scope_of(self).le(1, x.dims[axis]) or not scope_of(self).le(1, y.dims[axis]):
                raise self.fail(
                    f"spatial dim {axis - 1} is {x.dims[axis]} in x and {y.dims[axis]} in the result, "
                    "expected both to be proved at least 1"
                )
        return self.pooled(x, y.dims[1:-1])


def pool_properties(
    kind: str,
    window: Sequence[int],
    stride: Sequence[int] | None = None,
    pad: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    *,
    ceil: bool = False,
    exclude_pad: bool = False,
    divisor: int | None = None,
) -> dict[str, Attribute]:
    """The properties of a `PoolOp`; default values are left out."""
    found: dict[str, Attribute] = {"kind": StringAttr(kind), "window": int_list_attr(window)}
    for name, numbers, usual in (("stride", stride, 1), ("pad", pad, 0), ("dilation", dilation, 1)):
        if numbers is not None and any(n != usual for n in numbers):
            found[name] = int_list_attr(numbers)
    found |= {name: UnitAttr() for name, given in (("ceil", ceil), ("exclude_pad", exclude_pad)) if given}
    if divisor is not None:
        found["divisor"] = IntegerAttr(divisor, i64)
    return found


@irdl_op_definition
class OverlapAddOp(Cost, PureOp):
    """The sums of overlapping windows, the reverse of cutting a tensor into windows.

    x is [any dims, a window of n dims, n numbers of windows], the result [the same dims, n sizes]. In each of the n
    dims, element k of window l is added to the element at `l * stride + k * dilation - before` of the result. What lies
    outside of the result is left out, and an element on which no window lies is 0. Sums of 16-bit floats are computed
    in f32 and rounded once.

    ```mlir
    %y = ait.overlap_add %x stride [2, 2] before [1, 1] : !ait.tensor<batch x 64 x 128 x 128 x f16>  // windows of 4 x 4
    ```
    """

    name = "ait.overlap_add"
    SYNTAX: ClassVar[Syntax] = (
        Operands(),
        Prop("stride", INTS),
        Prop("dilation", INTS, optional=True),
        Prop("before", INTS, optional=True),
    )

    x = operand_def(TensorType)
    stride = prop_def(ArrayAttr[IntegerAttr])
    dilation = opt_prop_def(ArrayAttr[IntegerAttr])
    before = opt_prop_def(ArrayAttr[IntegerAttr])
    output = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue,
        dims: Sequence[Expr | int],
        stride: Sequence[int],
        dilation: Sequence[int] | None = None,
        before: Sequence[int] | None = None,
    ) -> None:
        result = TensorType.get(dims, tensor_type(x).element_type)
        self.set_up([x], [result], stride=stride, dilation=dilation, before=before)

    def numbers(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Stride, dilation and elements cut off before, for each covered dim."""
        strides = int_list(self.stride)
        n = len(strides)
        dilations = (1,) * n if self.dilation is None else int_list(self.dilation)
        return strides, dilations, (0,) * n if self.before is None else int_list(self.before)

    def infer_result_types(self) -> ResultTypes:
        x, y = self.expect_tensor(self.operands[0], "x"), self.expect_tensor(self.results[0], "the result")
        n, rank = len(int_list(self.stride)), y.rank
        if x.element_type == i1:
            raise self.fail("sums of i1 have no meaning; convert with ait.cast")
        if not 1 <= n <= MAX_DIMS or any(len(numbers) != n for numbers in self.numbers()):
            raise self.fail(f"stride, dilation and before have one number each for 1 to {MAX_DIMS} dims")
        for what, numbers, least in zip(("stride", "dilation", "before"), self.numbers(), (1, 1, 0), strict=True):
            if min(numbers) < least:
                raise self.fail(f"{what} is {list(numbers)}, expected at least {least}")
        if rank < n or x.rank != rank + n:
            raise self.fail(
                f"x has shape {shape_text(x.dims)} and the result {shape_text(y.dims)}; expected {n} more dims of x, a "
                f"window and a number of windows for each of the last {n} dims of the result"
            )
        outer = y.dims[: rank - n]
        if not same_shape(x.dims[: rank - n], outer, scope_of(self)):
            leading = shape_text(x.dims[: rank - n])
            raise self.fail(f"the leading dims of x, {leading}, are not those of the result, {shape_text(outer)}")
        check_declared(self, scope_of(self), y)
        return [TensorType.get(y.dims, x.element_type)]


OPS = (PoolOp, AdaptivePoolOp, OverlapAddOp)
