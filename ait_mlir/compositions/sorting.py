"""Medians, counts in intervals, and runs of equal elements, computed from sorted elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.index import EmbeddingOp, MaskedSelectOp
from ait_mlir.dialects.ait.sorting import HistogramOp, KthValueOp, SortOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import Expr, const, floordiv, product

ONE, ZERO = const(1), const(0)


def kth_value(w: Writer, x: SSAValue, axis: int, k: Expr, keep: bool = False) -> list[SSAValue]:
    """The k-th smallest element along an axis, counted from 1, and its index."""
    return _kept(w, x, axis, w.put_all(KthValueOp(x, k, axis)), keep)


def median(w: Writer, x: SSAValue, axis: int, keep: bool = False) -> list[SSAValue]:
    """The lower median along an axis, or the first NaN if there is one, and its index."""
    t = tensor_type(x)
    middle = floordiv(t.dims[axis] + 1, 2)
    return _kept(w, x, axis, w.put_all(KthValueOp(x, middle, axis, nan_first=is_float(t.element_type))), keep)


def _kept(w: Writer, x: SSAValue, axis: int, found: Sequence[SSAValue], keep: bool) -> list[SSAValue]:
    """Results without an axis; with `keep`, the axis stays as a dim of 1."""
    dims = tensor_type(x).dims
    return [w.reshape(y, (*dims[:axis], ONE, *dims[axis + 1 :])) if keep else y for y in found]


def histc(w: Writer, x: SSAValue, bins: int, low: float, high: float, element: Attribute) -> SSAValue:
    """The number of elements in each of `bins` intervals of equal length from `low` to `high`, as `element`; the last
    interval includes `high`.

    If `low` and `high` are equal, the least and the largest element are used instead; if these are equal, the range is
    from 1 less to 1 more.
    """
    t = tensor_type(x)
    wide = compute_type(t.element_type) if is_float(t.element_type) else f32
    x = w.cast(w.reshape(x, [t.num_elements()]), wide)
    if low == high:
        least, most = (w.reduce(kind, x, [0]) for kind in ("min", "max"))
        same = w.compare("eq", least, most)
        start, end = w.where(same, w.sub(least, 1.0), least), w.where(same, w.add(most, 1.0), most)
    else:
        start, end = w.scalar(low, wide), w.scalar(high, wide)
    scaled = w.mul(w.sub(x, start), float(bins))
    place = w.minimum(w.cast(w.div(scaled, w.sub(end, start)), i32), bins - 1)
    for relation, limit in (("ge", start), ("le", end)):
        place = w.where(w.compare(relation, x, limit), place, -1)
    return w.cast(w.put(HistogramOp(place, bins)), element)


# ** runs **


def selected(w: Writer, mask: SSAValue, bound: Expr) -> SSAValue:
    """The indices of the true elements of a flat mask; the op binds their number, the dim `bound`."""
    places = w.places(tensor_type(mask).dims[0])
    return w.once(("bound", bound), lambda: w.put(MaskedSelectOp(places, mask, TensorType.get([bound], i64))))


def true_places(w: Writer, mask: SSAValue, bound: Expr) -> list[SSAValue]:
    """The indices of the true elements, one tensor for each dim; the run binds their number, the dim `bound`."""
    dims = tensor_type(mask).dims
    places = selected(w, w.reshape(mask, [product(dims)]), bound)
    found: list[SSAValue] = []
    for axis, size in enumerate(dims):
        index = places
        if axis < len(dims) - 1:
            index = w.div(index, product(dims[axis + 1 :]))
        if axis > 0:
            index = w.sub(index, w.mul(w.div(index, size), size))
        found.append(index)
    return found


def elements_at(w: Writer, values: SSAValue, places: SSAValue) -> SSAValue:
    """Elements of a flat tensor by index."""
    column = w.reshape(values, [*tensor_type(values).dims, ONE])
    return w.reshape(w.put(EmbeddingOp(column, places)), tensor_type(places).dims)


def _runs(w: Writer, x: SSAValue, bound: Expr) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The runs of equal rows in x [n, m]: the index of each run's first row, the run's number for each row, and the
    lengths of the runs. The number of runs is the dim `bound`.
    """
    count, width = tensor_type(x).dims
    nothing = w.filled(0, [ONE, width], tensor_type(x).element_type)
    before = w.slice(w.concat([nothing, x], 0), 0, ZERO, count)
    differs = w.compare("ne", x, before)
    any_differs = w.reshape(differs, [count]) if width.as_int() == 1 else w.reduce("max", differs, [1])
    starts = w.either(w.compare("eq", w.places(count), 0), any_differs)
    places = selected(w, starts, bound)
    run = w.sub(w.put(CumulativeOp("sum", w.cast(starts, i64), 0)), 1)
    after = w.put(CumulativeOp("min", w.where(starts, w.places(count), count), 0, exclusive=True, reverse=True))
    return places, run, w.sub(elements_at(w, w.minimum(after, count), places), places)


def unique(
    w: Writer, x: SSAValue, axis: int | None, bound: Expr, order_of: Callable[[SSAValue], SSAValue] | None = None
) -> list[SSAValue]:
    """One element, or slice along an axis, for each run of equal neighbours; the run's number for each input element;
    and the lengths of the runs.

    The number of runs is the dim `bound`. With `order_of`, the rows [n, m] are first sorted by the indices
    `order_of(rows)`.
    """
    own = tensor_type(x).dims
    if axis is None:
        rows, rest = w.reshape(x, [product(own), ONE]), ()
    else:
        rest = tuple(d for a, d in enumerate(own) if a != axis)
        moved = w.permute(x, [axis, *(a for a in range(len(own)) if a != axis)])
        rows = w.reshape(moved, [own[axis], product(rest)])
    if bound.as_int() == 0:
        return [x, *(w.full(Affine.filled((bound,), 0)) for _ in range(2))]
    order = None if order_of is None else order_of(rows)
    if order is not None:
        rows = w.put(EmbeddingOp(rows, order))
    places, run, counts = _runs(w, rows, bound)
    values = w.reshape(w.put(EmbeddingOp(rows, places)), [bound, *rest])
    if order is not None:
        run = elements_at(w, run, w.put_all(SortOp(order, 0))[1])  # the inverse of a permutation
    if axis is None:
        return [values, w.reshape(run, own), counts]
    return [w.permute(values, [*range(1, axis + 1), 0, *range(axis + 1, len(own))]), run, counts]


def order_of_rows(w: Writer, x: SSAValue) -> SSAValue:
    """The indices of the rows of x [n, m] in ascending order: a stable sort by each column, from
    the last to the first.
    """
    count, width = tensor_type(x).dims

    def order(keys: SSAValue) -> SSAValue:
        return w.put_all(SortOp(keys, 0))[1]

    if width.as_int() == 1:
        return order(w.reshape(x, [count]))

    def step(before: Sequence[SSAValue], columns: Sequence[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [elements_at(w, before[0], order(elements_at(w, columns[0], before[0])))]

    return w.scan([w.places(count)], [w.permute(x, [1, 0])], [], step, reverse=True)[0]
