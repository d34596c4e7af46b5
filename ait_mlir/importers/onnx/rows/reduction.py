"""Reductions, cumulative sums, largest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.compositions.rearrange import flip
from ait_mlir.compositions.reduction import logsumexp, vector_norm
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.reduce import ArgmaxOp, TopkOp
from ait_mlir.dialects.ait.sorting import SortOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const, product
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row

Reduction = Callable[[Call, SSAValue, Sequence[int], bool], SSAValue]


def reduced(build: Reduction) -> Row:
    """A row for a reduction over axes, which are an attribute or an input; without axes over all, or over none."""

    def row(c: Call) -> Result:
        x = c.tensor(0)
        rank = tensor_type(x).rank
        axes = c.int_list("axes", 1)
        if not axes:
            if c.attr("noop_with_empty_axes", 0):
                return build(c, x, [], True)
            axes = list(range(rank))
        taken = sorted({c.placed(a, rank, "axes") for a in axes}) if rank else []
        return build(c, x, taken, bool(c.attr("keepdims", 1)))

    return row


def plain(kind: str) -> Reduction:
    return lambda c, x, axes, keep: c.w.reduce(kind, x, axes, keep) if axes else x


def _sum(c: Call, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return c.w.reduce("sum", x, axes, keep) if axes else x


def _square_sum(c: Call, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return _sum(c, c.w.mul(x, x), axes, keep)


def _norm(order: int) -> Reduction:
    def build(c: Call, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
        if not axes:
            return c.w.pointwise("abs", x)
        return vector_norm(c.w, x, axes, order, keep)

    return build


def _log_sum(c: Call, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return c.w.pointwise("log", _sum(c, x, axes, keep))


def _log_sum_exp(c: Call, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    element = tensor_type(x).element_type
    if not axes:
        return x
    return c.w.cast(logsumexp(c.w, c.w.cast(x, compute_type(element)), axes, keep), element)


def extreme_place(smallest: bool) -> Row:
    """A row for the place of the largest or smallest element along an axis, the first or the last of several."""

    def row(c: Call) -> SSAValue:
        x, axis = c.tensor(0), c.axis()
        dims = tensor_type(x).dims
        x = c.w.cast(x, i32) if tensor_type(x).element_type == i1 else x
        last = bool(c.attr("select_last_index", 0))
        if last:
            x = c.w.full(flip(c.w, x, [axis]))
        y = c.w.put(ArgmaxOp(x, axis, smallest=smallest))
        if last:
            y = c.w.sub(c.w.number(dims[axis] - 1, i64), y)
        return c.w.reshape(y, (*dims[:axis], 1, *dims[axis + 1 :])) if c.attr("keepdims", 1) else y

    return row


def cumulative(kind: str) -> Row:
    """A row for sums or products of the elements up to each."""

    def row(c: Call) -> SSAValue:
        x = c.tensor(0)
        axis = c.placed(c.ints(1)[0], c.rank())
        exclusive, reverse = bool(c.attr("exclusive", 0)), bool(c.attr("reverse", 0))
        return c.w.put(CumulativeOp(kind, x, axis, exclusive=exclusive, reverse=reverse))

    return row


def top_k(c: Call) -> Result:
    """The k largest or smallest elements along an axis and their places."""
    x, axis = c.tensor(0), c.axis(-1)
    k = const(c.attr("k")) if c.attr("k") is not None else c.exprs(1)[0]
    smallest = not c.attr("largest", 1)
    number = k.as_int()
    if number is None or number == 0:
        ordered = list(c.w.put_all(SortOp(x, axis, not smallest)))
        return tuple(c.w.slice(y, axis, const(0), k) for y in ordered)
    if number < 0:
        raise NotSupported(f"k is {number}, expected a number from 0 on")
    op = TopkOp(x, number, dim=None if axis == tensor_type(x).rank - 1 else axis, smallest=smallest)
    return tuple(c.w.put_all(op))


def hardmax(c: Call) -> SSAValue:
    """1 at the first largest element along an axis, else 0."""
    x = c.tensor(0)
    axis = c.axis(-1 if c.version >= 13 else 1)
    dims, element = tensor_type(x).dims, tensor_type(x).element_type
    if c.version < 13:
        flat = c.w.reshape(x, (product(dims[:axis]), product(dims[axis:])))
        return c.w.reshape(_one_at_largest(c, flat, 1), dims)
    return c.w.cast(_one_at_largest(c, x, axis), element)


def _one_at_largest(c: Call, x: SSAValue, axis: int) -> SSAValue:
    dims = tensor_type(x).dims
    place = c.w.reshape(c.w.put(ArgmaxOp(x, axis)), (*dims[:axis], 1, *dims[axis + 1 :]))
    only = tuple(d if a == axis else const(1) for a, d in enumerate(dims))
    steps = tuple(const(int(a == axis)) for a in range(len(dims)))
    own = c.w.full(Affine(only, steps, const(0)))
    return c.w.cast(c.w.compare("eq", own, place), tensor_type(x).element_type)


ROWS: dict[str, Row] = {
    **{f"Reduce{name}": reduced(plain(name.lower())) for name in ("Sum", "Mean", "Max", "Min", "Prod")},
    "ReduceSumSquare": reduced(_square_sum),
    "ReduceL1": reduced(_norm(1)),
    "ReduceL2": reduced(_norm(2)),
    "ReduceLogSum": reduced(_log_sum),
    "ReduceLogSumExp": reduced(_log_sum_exp),
    "ArgMax": extreme_place(smallest=False),
    "ArgMin": extreme_place(smallest=True),
    "CumSum": cumulative("sum"),
    "CumProd": cumulative("prod"),
    "TopK": top_k,
    "Hardmax": hardmax,
}
