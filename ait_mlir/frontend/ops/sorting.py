"""Operators that sort elements, search sorted rows, and count elements."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from ait_mlir.compositions import sorting
from ait_mlir.dialects.ait import sorting as ait
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import const
from ait_mlir.frontend.intvar import IntVar, product
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["argsort", "histc", "histogram", "kth_value", "median", "search_sorted", "sort", "unique_consecutive"]


class sort(Operator):
    """The elements along `dim` in ascending or `descending` order, and their indices, int64.

    NaN is larger than any number; equal elements keep their order.
    """

    def __init__(self, dim: int = -1, descending: bool = False):
        self.dim, self.descending = dim, descending

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        properties = {"dim": self.axis(x, self.dim), "descending": self.descending}
        self.outputs = self.emit(ait.SortOp, [x], properties, [x.type, TensorType.get(x.type.dims, i64)])
        return self.outputs[0], self.outputs[1]


class argsort(sort):
    """The indices of the sorted elements along `dim`, int64; arguments as in `sort`."""

    def __call__(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().__call__(x)[1]


class search_sorted(Operator):
    """For each value, the number of elements of a sorted row that are smaller; with `right` smaller or equal.

    `sorted` has one row for all values, or one for each index in the leading dims of the values. The result is int64,
    or int32 if `out_int32`.
    """

    def __init__(self, right: bool = False, out_int32: bool = False):
        self.right, self.element = right, i32 if out_int32 else i64

    def __call__(self, sorted: Tensor, values: Tensor) -> Tensor:
        type = TensorType.get(values.type.dims, self.element)
        return self.finish(self.emit_one(ait.SearchSortedOp, [sorted, values], {"right": self.right}, [type]))


class histogram(Operator):
    """int64 [bins]: how many elements of an integer tensor equal 0, 1, ..., `bins` - 1; others are not counted."""

    def __init__(self, bins: int):
        self.bins = bins

    def __call__(self, x: Tensor) -> Tensor:
        type = TensorType.get([self.bins], i64)
        return self.finish(self.emit_one(ait.HistogramOp, [x], {"bins": self.bins}, [type]))


class median(Operator):
    """The lower median along `dim`, or the first NaN if there is one, and its index, int64."""

    def __init__(self, dim: int = -1, keepdim: bool = False):
        self.dim, self.keepdim = dim, keepdim

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, place = self.write_all(sorting.median, x, self.axis(x, self.dim), keep=self.keepdim)
        return value, place


class kth_value(Operator):
    """The `k`-th smallest element along `dim`, counted from 1, and its index, int64."""

    def __init__(self, k: int, dim: int = -1, keepdim: bool = False):
        self.k, self.dim, self.keepdim = k, dim, keepdim

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axis = self.axis(x, self.dim)
        if not 1 <= self.k <= x.shape()[axis].upper_bound():
            raise self.fail(f"k is {self.k}, expected 1 to the size of dim {axis}")
        value, index = self.write_all(sorting.kth_value, x, axis, const(self.k), keep=self.keepdim)
        return value, index


class histc(Operator):
    """[bins]: how many elements lie in each of `bins` intervals of equal length from `min` to `max`, in the input's
    type; the last interval includes `max`.

    If `min` and `max` are equal, the least and the largest element are used instead; if these are equal, the range is
    from 1 less to 1 more.
    """

    def __init__(self, bins: int = 100, min: float = 0, max: float = 0):
        self.bins, self.low, self.high = bins, min, max

    def __call__(self, x: Tensor) -> Tensor:
        if self.bins < 1 or self.low > self.high:
            raise self.fail(f"needs at least 1 bin and min <= max, found {self.bins}, {self.low} and {self.high}")
        return self.write(sorting.histc, x, self.bins, self.low, self.high, x.type.element_type)


class unique_consecutive(Operator):
    """One element of each run of equal neighbours, in row-major order; with `dim`, one slice of each run of equal
    slices. A call returns these, the number of the run that each element belongs to (int64, of the shape of `x`, or of
    rank 1 with `dim`), and the lengths of the runs (int64). The number of runs is a dim called `name`, which the run
    binds (see `masked_select`).
    """

    def __init__(self, dim: int | None = None, name: str | None = None):
        self.dim, self.bound = dim, name

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        axis = None if self.dim is None else self.axis(x, self.dim)
        most = product(x.shape()) if axis is None else x.shape()[axis]
        values, run, counts = self.write_all(sorting.unique, x, axis, IntVar.bound_by(most, self.bound))
        return values, run, counts
