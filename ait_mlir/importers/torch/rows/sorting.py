"""Sorting, the largest elements and their indices, medians, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions import sorting
from ait_mlir.compositions.index import at_least, not_empty
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp, TopkOp
from ait_mlir.dialects.ait.sorting import SearchSortedOp, SortOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, Row, as_expr, element_type
from ait_mlir.importers.torch.library import torch


def _flat(c: Call, x: SSAValue) -> SSAValue:
    return c.w.reshape(x, [tensor_type(x).num_elements()])


def _with_indices(row: Callable[[Call, SSAValue], Sequence[SSAValue]]) -> Callable[[Call], Sequence[Value]]:
    """A row for elements of `self` and their indices; of a scalar, they are itself and 0."""

    def of_any_rank(c: Call) -> Sequence[Value]:
        x = c.tensor("self")
        return list(row(c, x)) if tensor_type(x).dims else [x, c.w.scalar(0, i64)]

    return of_any_rank


# ** all in order **


@_with_indices
def sort(c: Call, x: SSAValue) -> Sequence[SSAValue]:
    """The values in order and their indices. PyTorch's default need not be stable; a stable sort serves both."""
    return list(c.w.put_all(SortOp(x, c.axis("dim"), bool(c["descending"]))))


def argsort(c: Call) -> Value:
    return sort(c)[1]


def msort(c: Call) -> Value:
    return c.w.put(SortOp(c.tensor("self"), 0))


@_with_indices
def kth_value(c: Call, x: SSAValue) -> Sequence[SSAValue]:
    """The k-th smallest element along a dim, counted from 1, and its index."""
    return sorting.kth_value(c.w, x, c.axis("dim"), c.size("k"), keep=bool(c["keepdim"]))


@_with_indices
def median(c: Call, x: SSAValue) -> Sequence[SSAValue]:
    """The lower median along a dim, or NaN if there is one, and its index."""
    axis = c.axis("dim")
    return sorting.median(c.w, not_empty(c.w, x, [axis]), axis, keep=bool(c["keepdim"]))


@_with_indices
def mode(c: Call, x: SSAValue) -> Sequence[SSAValue]:
    """The most frequent element along a dim (the least of several) and its last index. NaN is not counted."""
    axis = c.axis("dim")
    x = not_empty(c.w, x, [axis])
    dims, element = tensor_type(x).dims, tensor_type(x).element_type
    last = len(dims) - 1
    rows = c.w.permute(c.w.cast(x, i32) if element == i1 else x, [*(a for a in range(len(dims)) if a != axis), axis])
    values, places = list(c.w.put_all(SortOp(rows, last)))
    ends, starts = (c.w.put(SearchSortedOp(values, values, right)) for right in (True, False))
    counts = c.w.sub(ends, starts)
    kept = (*tensor_type(values).dims[:-1], const(1))
    first = c.w.reshape(c.w.put(ArgmaxOp(counts, last)), kept)
    count = c.w.maximum(c.w.reshape(c.w.put(ReduceOp("max", counts, [last])), kept), c.w.scalar(1, i64))
    end = c.w.sub(c.w.add(first, count), c.w.scalar(1, i64))
    found = [c.w.put(GatherOp(y, [at], [last], range(last))) for y, at in ((values, first), (places, end))]
    return [c.w.reshape(c.w.cast(y, t), c.type(0).dims) for y, t in zip(found, (element, i64), strict=True)]


def median_of_all(c: Call) -> Value:
    """The lower median of all elements, or NaN if there is one."""
    return sorting.median(c.w, _flat(c, c.tensor("self")), 0)[0]


def median_of_numbers(of_all: bool) -> Row:
    """A row for the lower median without NaN: of all elements, or along a dim with its index."""

    def row(c: Call) -> Value | Sequence[Value]:
        x = c.tensor("self")
        if not is_float(tensor_type(x).element_type) or not tensor_type(x).dims:
            return median_of_all(c) if of_all else median(c)
        x, axis, dims = (_flat(c, x), 0, c.dims) if of_all else (x, c.axis("dim"), c.type(0).dims)
        own = tensor_type(x).dims
        numbers = c.w.cast(c.w.compare("eq", x, x), i64)
        count = c.w.reshape(c.w.put(ReduceOp("sum", numbers, [axis])), (*own[:axis], const(1), *own[axis + 1 :]))
        # NaN is the last in order; without a number, the first NaN: -1 / 2 is 0
        middle = c.w.div(c.w.sub(count, c.w.scalar(1, i64)), c.w.scalar(2, i64))
        kept = [a for a in range(len(own)) if a != axis]
        found = [c.w.put(GatherOp(y, [middle], [axis], kept)) for y in list(c.w.put_all(SortOp(x, axis)))]
        values, places = (c.w.reshape(y, dims) for y in found)
        return values if of_all else [values, places]

    return row


# ** largest and smallest elements **


@_with_indices
def topk(c: Call, x: SSAValue) -> Sequence[SSAValue]:
    """The `k` largest elements along a dim in descending order, or the smallest in ascending order, and their indices.

    If `k` depends on dims, they are the first `k` elements of the sorted dim.
    """
    k = c["k"]
    t, smallest = tensor_type(x), not c["largest"]
    axis = c.axis("dim")
    if not isinstance(k, int) or k == 0 or t.element_type == i1:
        ordered = list(c.w.put_all(SortOp(x, axis, not smallest)))
        return [c.w.slice(result, axis, const(0), as_expr(k)) for result in ordered]
    x = at_least(c.w, x, axis, k, f"there are fewer than {k} elements to take the {k} extreme ones from")
    return list(c.w.put_all(TopkOp(x, k, dim=None if axis == t.rank - 1 else axis, smallest=smallest)))


def place_of_extreme(smallest: bool) -> Row:
    """A row for the index of the largest or smallest element, or of the first NaN; without a dim, in the flattened
    tensor.
    """

    def row(c: Call) -> Value:
        x = c.tensor("self")
        x = c.w.cast(x, i32) if tensor_type(x).element_type == i1 else x
        if c["dim"] is None:
            flat = not_empty(c.w, _flat(c, x), [0])
            return c.w.reshape(c.w.put(ArgmaxOp(flat, 0, smallest=smallest)), c.dims)
        if not tensor_type(x).dims:
            return c.w.scalar(0, i64)
        axis = c.axis("dim")
        return c.w.reshape(c.w.put(ArgmaxOp(not_empty(c.w, x, [axis]), axis, smallest=smallest)), c.dims)

    return row


def extreme(kind: str) -> Row:
    """A row for the largest or smallest elements along a dim, and for their indices if the model uses them."""

    def row(c: Call) -> Sequence[Value]:
        x, dims = c.tensor("self"), c.type(0).dims
        if not tensor_type(x).dims:
            return [x, c.w.scalar(0, i64)]
        axis = c.axis("dim")
        x = not_empty(c.w, x, [axis])
        values = c.w.reshape(c.w.put(ReduceOp(kind, x, [axis])), dims)
        if all(user.args[1] == 0 for user in c.node.users):
            return [values]
        numbers = c.w.cast(x, i32) if tensor_type(x).element_type == i1 else x
        return [values, c.w.reshape(c.w.put(ArgmaxOp(numbers, axis, smallest=kind == "min")), dims)]

    return row


# ** where values belong **


def _searched(c: Call, rows: SSAValue, among: str, right: bool) -> Value:
    """The places of the argument `self`, a tensor or a number, in rows; both are compared in their common type."""
    element: Attribute = i32 if c["out_int32"] else i64
    given = [bound.meta["val"] if hasattr(bound, "meta") else bound for bound in map(c.operand, (among, "self"))]
    common = element_type(torch.result_type(*given))
    number = c.arguments["self"]
    values = c.w.scalar(number, common) if isinstance(number, int | float) else c.w.cast(c.tensor("self"), common)
    return c.w.put(SearchSortedOp(c.w.cast(rows, common), values, right, element))


def search_sorted(c: Call) -> Value:
    """How many elements of a sorted row come before each value."""
    rows = c.tensor("sorted_sequence")
    if (sorter := c.optional("sorter")) is not None:
        last = tensor_type(rows).rank - 1
        rows = c.w.put(GatherOp(rows, [sorter], [last], range(last)))
    return _searched(c, rows, "sorted_sequence", bool(c["right"]) or c["side"] == "right")


def bucketize(c: Call) -> Value:
    """The bucket of each value between sorted boundaries."""
    return _searched(c, c.tensor("boundaries"), "boundaries", bool(c["right"]))


# ** counts **


def histc(c: Call) -> Value:
    """The number of elements in each of `bins` intervals from `min` to `max`."""
    return sorting.histc(c.w, c.tensor("self"), c["bins"], float(c["min"]), float(c["max"]), c.element)


ROWS: dict[str, Row] = {
    "aten.sort.default aten.sort.stable": sort,
    "aten.argsort.default aten.argsort.stable": argsort,
    "aten.msort.default": msort,
    "aten.kthvalue.default": kth_value,
    "aten.median.dim": median,
    "aten.nanmedian.default": median_of_numbers(of_all=True),
    "aten.nanmedian.dim": median_of_numbers(of_all=False),
    "aten.median.default": median_of_all,
    "aten.mode.default": mode,
    "aten.topk.default": topk,
    "aten.argmax.default": place_of_extreme(smallest=False),
    "aten.argmin.default": place_of_extreme(smallest=True),
    "aten.max.dim": extreme("max"),
    "aten.min.dim": extreme("min"),
    "aten.searchsorted.Tensor aten.searchsorted.Scalar": search_sorted,
    "aten.bucketize.Tensor aten.bucketize.Scalar": bucketize,
    "aten.histc.default": histc,
}
