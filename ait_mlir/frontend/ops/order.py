"""Operators that order elements, find places in their order, and count equal ones."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from ait_mlir.dialects.ait import order as ait
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.operator import Operator
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
