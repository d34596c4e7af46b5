"""Ops that sort elements or places, search in sorted rows, and count equal elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value, broadcast_shapes, check_declared, same_shape
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.reduce import index_type
from ait_mlir.dialects.ait.syntax import INT, SHAPE, Flag, Operands, Prop, Syntax
from ait_mlir.dialects.ait.traits import Cost, Reduction
from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, product


@irdl_op_definition
class SortOp(Reduction, PureOp):
    """The elements along a dim in ascending or `descending` order, and their places.

    NaN is larger than any number. Equal elements keep their order, in descending order, too. Places are i32 or i64.

    ```mlir
    %values, %places = ait.sort %x dim 1 descending : !ait.tensor<batch x seq x f16>, !ait.tensor<batch x seq x i64>
    ```
    """

    name = "ait.sort"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("dim", INT), Flag("descending"))
    WORK: ClassVar[int] = 16

    input = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    descending = opt_prop_def(UnitAttr)
    values = result_def(TensorType)
    places = result_def(TensorType)

    def __init__(self, input: Value, dim: int, descending: bool = False, element_type: Attribute = i64) -> None:
        t = tensor_type(SSAValue.get(input))
        self.set_up([input], [t, TensorType.get(t.dims, element_type)], dim=dim, descending=descending)
        self.infer_result_types()

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.operands[0], "the input")
        if not 0 <= self.dim.value.data < t.rank:
            raise self.fail(f"dim {self.dim.value.data} is out of range for shape {shape_text(t.dims)}")
        return [t, TensorType.get(t.dims, index_type(self, self.results[1]))]


@irdl_op_definition
class KthValueOp(Reduction, PureOp):
    """The k-th smallest element along a dim, counted from 1, and its place. The results do not have this dim.

    NaN is larger than any number; with `nan_first` the first NaN of a row, if there is one, is the result. Of equal
    elements the first comes first. Places are i32 or i64.

    ```mlir
    %v, %p = ait.kth_value %x k [seq ceildiv 2] dim 1 nan_first : !ait.tensor<batch x f16>, !ait.tensor<batch x i64>
    ```
    """

    name = "ait.kth_value"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("k", SHAPE), Prop("dim", INT), Flag("nan_first"))
    WORK: ClassVar[int] = 4

    input = operand_def(TensorType)
    k = prop_def(ShapeAttr)
    dim = prop_def(IntegerAttr)
    nan_first = opt_prop_def(UnitAttr)
    value = result_def(TensorType)
    place = result_def(TensorType)

    def __init__(
        self, input: Value, k: Expr | int, dim: int, nan_first: bool = False, element_type: Attribute = i64
    ) -> None:
        t = tensor_type(SSAValue.get(input))
        dims = (*t.dims[:dim], *t.dims[dim + 1 :])
        results = [TensorType.get(dims, t.element_type), TensorType.get(dims, element_type)]
        self.set_up([input], results, k=[k], dim=dim, nan_first=nan_first)

    def infer_result_types(self) -> ResultTypes:
        t = self.expect_tensor(self.operands[0], "the input")
        axis, scope = self.dim.value.data, scope_of(self)
        if not 0 <= axis < t.rank:
            raise self.fail(f"dim {axis} is out of range for shape {shape_text(t.dims)}")
        if len(self.k.data) != 1:
            raise self.fail(f"k is {shape_text(self.k.data)}, expected one number")
        check_declared(self, scope, TensorType.get(self.k.data, t.element_type))
        (k,) = self.k.data
        if not scope.le(1, k) or not scope.le(k, t.dims[axis]):
            raise self.fail(f"k is {k}, which is not proved to be 1 to {t.dims[axis]}, the size of dim {axis}")
        if self.nan_first is not None and not is_float(t.element_type):
            raise self.fail(f"nan_first needs a floating-point type, got {t.element_type}")
        dims = (*t.dims[:axis], *t.dims[axis + 1 :])
        return [TensorType.get(dims, t.element_type), TensorType.get(dims, index_type(self, self.results[1]))]


@irdl_op_definition
class SearchSortedOp(Cost, PureOp):
    """For each value, the number of elements of a sorted row that are smaller; with `right` smaller or equal.

    Values larger than all elements, such as NaN, get the length of the row. The sorted tensor has one row for all
    values, or one for each index of the leading dims of the values. The result is i32 or i64.

    ```mlir
    %y = ait.search_sorted %sorted, %values right : !ait.tensor<batch x 16 x i64>
    ```
    """

    name = "ait.search_sorted"
    SYNTAX: ClassVar[Syntax] = (Operands(("sorted", "values")), Flag("right"))
    WORK: ClassVar[int] = 16

    sorted = operand_def(TensorType)
    values = operand_def(TensorType)
    right = opt_prop_def(UnitAttr)
    output = result_def(TensorType)

    def __init__(
        self,
        sorted: Value,
        values: Value,
        right: bool = False,
        element_type: Attribute = i64,
    ) -> None:
        result = TensorType.get(tensor_type(SSAValue.get(values)).dims, element_type)
        self.set_up([sorted, values], [result], right=right)
        self.infer_result_types()

    def infer_result_types(self) -> ResultTypes:
        rows, values = self.expect_tensor(self.operands[0], "sorted"), self.expect_tensor(self.operands[1], "values")
        if rows.rank == 0:
            raise self.fail("sorted has no dim to search in")
        if rows.element_type != values.element_type:
            raise self.fail(f"values are {values.element_type}, but sorted is {rows.element_type}")
        if rows.element_type == i1:
            raise self.fail("a search in i1 has no meaning; convert with ait.cast")
        outer = rows.dims[:-1]
        if rows.rank > 1 and (rows.rank != values.rank or not same_shape(outer, values.dims[:-1], scope_of(self))):
            raise self.fail(
                f"sorted has rows for {shape_text(outer)}, but values have shape {shape_text(values.dims)}; "
                "expected one row, or one for each index in the dims of values but the last"
            )
        return [TensorType.get(values.dims, index_type(self, self.results[0]))]


@irdl_op_definition
class HistogramOp(Cost, PureOp):
    """The number of elements equal to 0, 1, ..., `bins` - 1. Other elements are not counted. The result is i32 or i64.

    ```mlir
    %counts = ait.histogram %ids bins 64 : !ait.tensor<64 x i64>
    ```
    """

    name = "ait.histogram"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("bins", INT))

    input = operand_def(TensorType)
    bins = prop_def(IntegerAttr)
    output = result_def(TensorType)

    def __init__(self, input: Value, bins: int, element_type: Attribute = i64) -> None:
        self.set_up([input], [TensorType.get([bins], element_type)], bins=bins)
        self.infer_result_types()

    def elements(self) -> Expr:
        return tensor_type(self.input).num_elements()

    def infer_result_types(self) -> ResultTypes:
        t, bins = self.expect_tensor(self.operands[0], "the input"), self.bins.value.data
        if is_float(t.element_type) or t.element_type == i1:
            raise self.fail(f"counts integers, got {t.element_type}; convert with ait.cast")
        if bins < 1:
            raise self.fail(f"bins is {bins}, expected at least 1")
        return [TensorType.get([bins], index_type(self, self.results[0]))]


MOST_ORDERED = 2**31 - 1
"""The most places that an order has, and the most elements that their indices can name."""


@irdl_op_definition
class OrderOp(Cost, PureOp):
    """The places of index tensors in the order of the elements that they name: what a scatter by these indices sorts.

    The index tensors, i32 or i64, broadcast to one shape; its places are numbered in row-major order. `sizes` are the
    dims that the tensors index, one each. The keys are the row-major numbers of the named elements, in ascending order,
    and `places` are the places that name them; places with equal keys keep their order. Both have one dim and are i32.
    An index from -size to -1 counts from the end. An index outside of its dim is invalid: the CPU fails and names the
    index; on a GPU the place has the key 0, and its highest bit is set.

    ```mlir
    %keys, %places = ait.order %i, %j sizes [nodes, 3] : !ait.tensor<edges x i32>, !ait.tensor<edges x i32>
    ```
    """

    name = "ait.order"
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("sizes", SHAPE))
    WORK: ClassVar[int] = 16

    indices = var_operand_def(TensorType)
    sizes = prop_def(ShapeAttr)
    keys = result_def(TensorType)
    places = result_def(TensorType)

    def __init__(self, indices: Sequence[SSAValue], sizes: Sequence[Expr | int]) -> None:
        none = TensorType.get([1], i32)
        self.set_up([indices], [none, none], sizes=sizes)

    def space(self) -> Shape:
        """The shape to which the index tensors broadcast."""
        return broadcast_shapes(
            self, [f"index {i}" for i in range(len(self.indices))], [tensor_type(v).dims for v in self.indices]
        )

    def elements(self) -> Expr:
        return product(self.space())

    def infer_result_types(self) -> ResultTypes:
        sizes, scope = self.sizes.data, scope_of(self)
        types = [self.expect_tensor(v, f"index {i}") for i, v in enumerate(self.indices)]
        if not types or len(types) != len(sizes):
            raise self.fail(f"{len(types)} index tensors for {len(sizes)} sizes; expected one or more, a size for each")
        elements = {t.element_type for t in types}
        if elements not in ({i32}, {i64}):
            found = ", ".join(str(t.element_type) for t in types)
            raise self.fail(f"indices must be all i32 or all i64, got {found}")
        check_declared(self, scope, TensorType.get(sizes, i32))
        for size in sizes:
            if not scope.le(0, size):
                raise self.fail(f"size {size} is not proved to be at least 0")
        result = TensorType.get([product(self.space())], i32)
        for what, count in (("places", result.dims[0]), ("elements", product(sizes))):
            if not scope.le(count, MOST_ORDERED):
                raise self.fail(f"{count} {what}, which are not proved to be at most 2^31 - 1")
        return [result, result]


def check_order(op: AitOp, order: Sequence[SSAValue], count: Expr, sizes: Shape) -> None:
    """Raise unless two values can be the keys and places of `count` places, in the order of elements of dims `sizes`.
    Other ops than `ait.order` may give them, such as a param that holds an order.
    """
    scope, expected = scope_of(op), TensorType.get([count], i32)
    for what, value in zip(("keys", "places"), order, strict=True):
        t = op.expect_tensor(value, f"the order's {what}")
        if t.element_type != i32 or t.rank != 1 or not scope.equal(t.dims[0], count):
            raise op.fail(f"the order's {what} are {t}, expected {expected}, one for each place")
    first, second = (value.owner for value in order)
    if not isinstance(first, OrderOp) or not isinstance(second, OrderOp):
        return
    if [first.keys, first.places] != [*order]:
        raise op.fail("the order is not the keys and then the places of one ait.order")
    if not same_shape(given := first.sizes.data, sizes, scope):
        raise op.fail(
            f"the order is for indices into {shape_text(given)}, but the indexed dims are {shape_text(sizes)}"
        )


OPS = (SortOp, KthValueOp, SearchSortedOp, HistogramOp, OrderOp)
