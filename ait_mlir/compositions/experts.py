"""Products of a mixture of experts: groups of rows, each with its own matrix, and the gathers and scatters of these
rows.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.index import GatherOp, ScatterOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const


def ends_of_groups(w: Writer, starts: SSAValue, groups: int, rows: Expr) -> SSAValue:
    """The ends of all groups of `rows` rows, from their starts. `starts` may also list the end of the last group."""
    given = tensor_type(starts)
    total = w.reshape(w.number(rows, given.element_type), [1])
    if groups == 1 and given.dims[0].as_int() == 1:
        return total
    ends = w.slice(starts, 0, 1, given.dims[0] - 1)
    return ends if given.dims[0].as_int() == groups + 1 else w.concat([ends, total], 0)


def rows_at(w: Writer, x: SSAValue, index: SSAValue) -> SSAValue:
    """The rows of x [N, K] at index [R]."""
    return w.put(GatherOp(x, [w.reshape(index, [*tensor_type(index).dims, const(1)])], [0], [1]))


def rows_to(w: Writer, x: SSAValue, place: SSAValue, is_placed: SSAValue, rows: Expr, kind: str = "set") -> SSAValue:
    """A tensor of `rows` rows with the rows of x [R, N] at positions `place` [R], and 0 elsewhere. With "add", rows of
    x at the same position are added.

    Rows of x where `is_placed` [R] is false are left out.
    """
    t, spare = tensor_type(x), rows + 1  # the last row takes what is left out
    index = w.where(is_placed, w.cast(place, i64), w.number(rows, i64))
    zeros = w.filled(0.0, [spare, t.dims[1]], t.element_type)
    found = w.put(ScatterOp(kind, zeros, x, [w.reshape(index, [*tensor_type(index).dims, const(1)])], [0], [1]))
    return w.slice(found, 0, 0, rows)
