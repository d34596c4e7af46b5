"""Operators that order elements, find places in their order, and count elements."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from ait_mlir.dialects.ait import order as ait
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.intvar import IntVar, as_dim, product
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.cumulative import cummin, cumsum
from ait_mlir.frontend.ops.elementwise import FuncEnum, cast, elementwise, eq, ge, le, ne, where
from ait_mlir.frontend.ops.index import embedding, masked_select
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.reduce import argmax, reduce_any, reduce_max, reduce_min
from ait_mlir.frontend.ops.view import concatenate, dynamic_slice, permute, reshape
from ait_mlir.frontend.tensor import Tensor


class sort(Operator):
    """The elements along `dim` in ascending or `descending` order, and their places, int64.

    NaN is larger than any number; equal elements keep their order.
    """

    def __init__(self, dim: int = -1, descending: bool = False):
        super().__init__()
        self.dim, self.descending = dim, descending

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.begin(x)
        properties = {"dim": self.axis(x, self.dim), "descending": self.descending}
        self.outputs = self.emit(ait.SortOp, [x], properties, [x.type, TensorType.get(x.type.dims, i64)])
        return self.outputs[0], self.outputs[1]


class argsort(sort):
    """The places of the sorted elements along `dim`, int64; the arguments are those of `sort`."""

    def __call__(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().__call__(x)[1]


class search_sorted(Operator):
    """For each value, the number of elements of a sorted row that are smaller; with `right` smaller or equal.

    `sorted` has one row for all values, or one for each index in the leading dims of the values. The result is int64,
    or int32 if `out_int32`.
    """

    def __init__(self, right: bool = False, out_int32: bool = False):
        super().__init__()
        self.right, self.element = right, i32 if out_int32 else i64

    def __call__(self, sorted: Tensor, values: Tensor) -> Tensor:
        self.begin(sorted, values)
        type = TensorType.get(values.type.dims, self.element)
        return self.finish(self.emit_one(ait.SearchSortedOp, [sorted, values], {"right": self.right}, [type]))


class histogram(Operator):
    """int64 [bins]: how many elements of an integer tensor equal 0, 1, ..., `bins` - 1; others are not counted."""

    def __init__(self, bins: int):
        super().__init__()
        self.bins = bins

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        type = TensorType.get([self.bins], i64)
        return self.finish(self.emit_one(ait.HistogramOp, [x], {"bins": self.bins}, [type]))


class median(Operator):
    """The lower one of the middle elements along `dim`, and its place, int64; the first NaN if there is one."""

    def __init__(self, dim: int = -1, keepdim: bool = False):
        super().__init__()
        self.dim, self.keepdim = dim, keepdim

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.begin(x)
        axis = self.axis(x, self.dim)
        size = x.shape()[axis]
        values, places = sort(axis)(x)
        value, place = (self._at(y, axis, (size - 1) // 2) for y in (values, places))
        if "float" in x.dtype():
            # NaN is the last in order, and comes first for argmax
            last = self._at(values, axis, size - 1)
            is_number = eq()(last, last)
            first = reshape()(argmax(axis)(x), place.shape())
            value, place = where()(is_number, value, last), where()(is_number, place, first)
        self.outputs = [value, place]
        return value, place

    def _at(self, x: Tensor, axis: int, index: IntVar) -> Tensor:
        """The elements at one index of an axis."""
        starts = [index if a == axis else None for a in range(x.rank)]
        ends = [index + 1 if a == axis else None for a in range(x.rank)]
        kept = [([as_dim(1)] if self.keepdim else []) if a == axis else [d] for a, d in enumerate(x.shape())]
        return reshape()(dynamic_slice()(x, starts, ends), [d for dims in kept for d in dims])


class histc(Operator):
    """[bins]: how many elements lie in each of `bins` intervals of equal length from `min` to `max`, in the input's
    type; the last interval includes `max`.

    If `min` and `max` are equal, the least and the largest element are used instead; if these are equal, the range is
    from 1 less to 1 more.
    """

    def __init__(self, bins: int = 100, min: float = 0, max: float = 0):
        super().__init__()
        self.bins, self.low, self.high = bins, min, max

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        if self.bins < 1 or self.low > self.high:
            raise self.fail(f"needs at least 1 bin and min <= max, found {self.bins}, {self.low} and {self.high}")
        wide = x if x.dtype() == "float64" else cast()(x, "float32")
        start, end = self._range(wide)
        place = cast()((wide - start) * float(self.bins) / (end - start), "int32")
        place = elementwise(FuncEnum.MIN)(place, self.bins - 1)
        inside = ge()(wide, start) * le()(wide, end)
        return self.finish(cast()(histogram(self.bins)(where()(inside, place, -1)), x.dtype()))

    def _range(self, x: Tensor) -> tuple[Tensor | float, Tensor | float]:
        if self.low < self.high:
            return float(self.low), float(self.high)
        least, most = reduce_min(None)(x), reduce_max(None)(x)
        same = eq()(least, most)
        return where()(same, least - 1.0, least), where()(same, most + 1.0, most)


class unique_consecutive(Operator):
    """The elements that differ from the one before, or the slices along `dim` that do: without a dim of all elements in
    row-major order.

    A call returns them, the number of the run that each element belongs to (int64, of the shape of `x`, or of one dim),
    and the lengths of the runs (int64). Their number is a dim that the run binds, as of `masked_select`, called `name`.
    """

    def __init__(self, dim: int | None = None, name: str | None = None):
        super().__init__()
        self.dim, self.bound = dim, name

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.begin(x)
        axis = 0 if self.dim is None else self.axis(x, self.dim)
        whole = reshape()(x, [-1]) if self.dim is None else x
        front = [axis, *(a for a in range(whole.rank) if a != axis)]
        slices = permute()(whole, front)
        count, *rest = slices.shape()
        rows = reshape()(slices, [count, product(rest)])
        starts = self._starts(rows)
        places = masked_select(self.bound)(arange()(count), starts)
        found = reshape()(embedding()(rows, places), [places.shape()[0], *rest])
        run = cumsum(0)(cast()(starts, "int64")) - 1
        total = arange().number(count)
        after = cummin(0, exclusive=True, reverse=True)(where()(starts, arange()(count), total))
        ends = reshape()(embedding()(reshape()(elementwise(FuncEnum.MIN)(after, total), [count, 1]), places), [-1])
        back = [front.index(a) for a in range(whole.rank)]
        run = reshape()(run, x.shape()) if self.dim is None else run
        self.outputs = [permute()(found, back), run, ends - places]
        return self.outputs[0], self.outputs[1], self.outputs[2]

    def _starts(self, rows: Tensor) -> Tensor:
        """Which rows differ from the one before; the first one does."""
        count, width = rows.shape()
        nothing = Tensor(shape=[1, width], dtype=rows.dtype(), value=0)
        before = dynamic_slice()(concatenate()([nothing, rows], 0), [0, None], [count, None])
        differs = reduce_any(1)(ne()(rows, before))
        return where()(eq()(arange()(count), 0), True, differs)
