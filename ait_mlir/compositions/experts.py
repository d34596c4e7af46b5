"""Products of a mixture of experts: groups of rows, each with its own matrix, and the ways of rows to and from them."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.index import GatherOp, ScatterOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const


def ends_of_groups(w: Writer, starts: SSAValue, groups: int, rows: Expr) -> SSAValue:
    """The end of each group of `rows` rows, from the start of each; `starts` may have the end of the last, too."""
    given = tensor_type(starts)
    total = w.reshape(w.number(rows, given.element_type), [1])
    if groups == 1 and given.dims[0].as_int() == 1:
        return total
    ends = w.slice(starts, 0, 1, given.dims[0] - 1)
    return ends if given.dims[0].as_int() == groups + 1 else w.concat([ends, total], 0)


def rows_at(w: Writer, x: SSAValue, index: SSAValue) -> SSAValue:
    """The rows of x [N, K] at the numbers of index [R]."""
    return w.put(GatherOp(x, [w.reshape(index, [*tensor_type(index).dims, const(1)])], [0], [1]))


def rows_to(w: Writer, x: SSAValue, place: SSAValue, is_placed: SSAValue, rows: Expr, kind: str = "set") -> SSAValue:
    """That many `rows`, 0 but for the rows of x [R, N] at their places [R]; "add" sums those of one place.

    Rows of x where `is_placed` [R] is false are left out.
    """
    t, spare = tensor_type(x), rows + 1  # the last row takes what is left out
    index = w.where(is_placed, w.cast(place, i64), w.number(rows, i64))
    zeros = w.filled(0.0, [spare, t.dims[1]], t.element_type)
    found = w.put(ScatterOp(kind, zeros, x, [w.reshape(index, [*tensor_type(index).dims, const(1)])], [0], [1]))
    return w.slice(found, 0, 0, rows)
