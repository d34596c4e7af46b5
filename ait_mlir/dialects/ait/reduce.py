"""Ops that drop dims: sums and similar reductions, and the largest elements of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.syntax import INT, INTS, Flag, Operands, Prop, Syntax, Word, int_list
from ait_mlir.dialects.ait.traits import AlongDims, ReduceLike, Reduction
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import const

KINDS = ("sum", "prod", "mean", "max", "min", "var")
FLOAT_KINDS = ("mean", "var")
BOOL_KINDS = ("max", "min")
"""The kinds that accept booleans: the maximum is true if any is, the minimum if all are."""


@irdl_op_definition
class ReduceOp(AlongDims, ReduceLike, PureOp):
    """Sum, product, mean, largest or smallest element, or variance over some dims. The result does not have these dims.

    Max and min are NaN if an element is NaN. Without elements the sum is 0, the product 1, mean and variance are NaN,
    and max and min are the limits of the element type. `var` divides by the number of elements minus `correction`.
    Integers wrap.

    ```mlir
    %y = ait.reduce var %x dims [1, 2] correction 1 : !ait.tensor<batch x f16>
    ```
    """

    name = "ait.reduce"
    SYNTAX: ClassVar[Syntax] = (
        Word("kind", KINDS),
        Operands(),
        Prop("dims", INTS),
        Prop("correction", INT, optional=True),
    )

    input = operand_def(TensorType)
    kind = prop_def(StringAttr)
    dims = prop_def(ArrayAttr[IntegerAttr])
    correction = opt_prop_def(IntegerAttr)
    output = result_def(TensorType)

    def __init__(self, kind: str, input: Value, dims: Sequence[int], correction: int | None = None) -> None:
        self.set_up([input], kind=kind, dims=dims, correction=correction)

    def axes(self) -> tuple[int, ...]:
        """The dims that are reduced, as integers."""
        return int_list(self.dims)

    def reduced_axes(self) -> tuple[int, ...]:
        return self.axes()

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.operands[0], "the input")
        axes, kind = self.axes(), self.kind.data
        if not all(0 <= axis < t.rank for axis in axes):
            raise self.fail(f"dims {list(axes)} are out of range for shape {shape_text(t.dims)}")
        if list(axes) != sorted(set(axes)):
            raise self.fail(f"dims {list(axes)} are not ascending")
        if kind in FLOAT_KINDS and not is_float(t.element_type):
            raise self.fail(f"{kind} needs a floating-point type, got {t.element_type}; convert with ait.cast")
        if t.element_type == i1 and kind not in BOOL_KINDS:
            raise self.fail(f"{kind} of i1 has no meaning; convert with ait.cast")
        if self.correction is not None and (kind != "var" or self.correction.value.data < 0):
            raise self.fail(f"correction {self.correction.value.data} of {kind}; only var has one, 0 or more")
        return [TensorType.get([d for i, d in enumerate(t.dims) if i not in axes], t.element_type)]


@irdl_op_definition
class ArgmaxOp(AlongDims, ReduceLike, PureOp):
    """The index of the largest or `smallest` element along one dim. The result does not have this dim.

    NaN comes before any number, of equal elements the first counts. The result is i32 or i64.

    ```mlir
    %y = ait.argmax %x dim 1 : !ait.tensor<batch x i64>
    ```
    """

    name = "ait.argmax"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT), Flag("smallest"))

    input = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    smallest = opt_prop_def(UnitAttr)
    output = result_def(TensorType)

    def __init__(self, input: Value, dim: int, element_type: Attribute = i64, *, smallest: bool = False) -> None:
        t = SSAValue.get(input).type
        assert isinstance(t, TensorType)
        dims = [d for i, d in enumerate(t.dims) if i != dim]
        self.set_up([input], [TensorType.get(dims, element_type)], dim=dim, smallest=smallest)

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.operands[0], "the input")
        axis = self.dim.value.data
        if not 0 <= axis < t.rank:
            raise self.fail(f"dim {axis} is out of range for shape {shape_text(t.dims)}")
        if t.element_type == i1:
            raise self.fail("a largest i1 has no meaning; convert with ait.cast")
        if not scope_of(self).le(1, t.dims[axis]):
            raise self.fail(f"dim {axis} of the input is {t.dims[axis]}, which is not proved to be at least 1")
        return [TensorType.get((*t.dims[:axis], *t.dims[axis + 1 :]), index_type(self, self.results[0]))]


@irdl_op_definition
class TopkOp(Reduction, PureOp):
    """The `k` largest elements along a dim (the last by default) in descending order, or the `smallest` in ascending
    order, and their places.

    NaN is larger than any number; of equal elements the first comes first. The places are i32 or i64.

    ```mlir
    %values, %places = ait.topk %x k 5 dim 0 smallest : !ait.tensor<5 x batch x f16>, !ait.tensor<5 x batch x i64>
    ```
    """

    name = "ait.topk"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("k", INT), Prop("dim", INT, optional=True), Flag("smallest"))

    input = operand_def(TensorType)
    k = prop_def(IntegerAttr)
    dim = opt_prop_def(IntegerAttr)
    smallest = opt_prop_def(UnitAttr)
    values = result_def(TensorType)
    places = result_def(TensorType)

    def __init__(
        self,
        input: Value,
        k: int,
        element_type: Attribute = i64,
        *,
        dim: int | None = None,
        smallest: bool = False,
    ) -> None:
        t = tensor_type(SSAValue.get(input))
        axis = t.rank - 1 if dim is None else dim
        dims = (*t.dims[:axis], k, *t.dims[axis + 1 :])
        results = [TensorType.get(dims, t.element_type), TensorType.get(dims, element_type)]
        self.set_up([input], results, k=k, dim=dim, smallest=smallest)

    @property
    def axis(self) -> int:
        """The dim along which elements are chosen."""
        return tensor_type(self.input).rank - 1 if self.dim is None else self.dim.value.data

    def reduced_axes(self) -> tuple[int, ...]:
        return (self.axis,)

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.operands[0], "the input")
        k = self.k.value.data
        if t.rank == 0:
            raise self.fail("the input has no dim to choose from")
        if t.element_type == i1:
            raise self.fail("a largest i1 has no meaning; convert with ait.cast")
        axis = self.axis
        if not 0 <= axis < t.rank:
            raise self.fail(f"dim {axis} is out of range for shape {shape_text(t.dims)}")
        if k < 1 or not scope_of(self).le(const(k), t.dims[axis]):
            raise self.fail(f"k is {k}, expected 1 to {t.dims[axis]}, dim {axis} of the input, proved to be as many")
        dims = (*t.dims[:axis], k, *t.dims[axis + 1 :])
        return [TensorType.get(dims, t.element_type), TensorType.get(dims, index_type(self, self.results[1]))]


def index_type(op: AitOp, result: SSAValue) -> Attribute:
    """The element type of a result that holds places."""
    element = op.expect_tensor(result, "the result").element_type
    if element not in (i32, i64):
        raise op.fail(f"places are i32 or i64, not {element}")
    return element


OPS = (ReduceOp, ArgmaxOp, TopkOp)
