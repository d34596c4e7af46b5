"""Divides a reduction of all elements into two: one within each row, and one over the results of the rows.

This is done where other ops reduce the same rows before, as in the loss of a batch: its terms need the maximum and the
sum of their row. The first reduction then takes place where the row has been read, and the second one reads a number
for each row.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32
from xdsl.ir import Block, Operation

from ait_mlir.dialects.ait.elementwise import CastOp
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.traits import Reduction, ScalarLike
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.elements import form_loops, has_elements

MAX_VISITED = 32
"""Most ops among which a row's reductions are looked for."""
IN_PARTS = ("sum", "mean", "max", "min")
"""Kinds of reductions of which the results of rows of equal length are reduced in the same way."""


def divide_row_sums(block: Block) -> bool:
    """Divide the reductions of a block; returns whether there were any."""
    found = [(op, axes) for op in block.ops if isinstance(op, ReduceOp) and (axes := row_axes(op))]
    for op, axes in found:
        _divide(block, op, axes)
    return bool(found)


def row_axes(op: ReduceOp) -> tuple[int, ...]:
    """The dims within one row, if the input of a full reduction is computed from rows that are reduced before it.

    Empty if no such reduction of rows leads to `op` through elementwise ops, if it has other users, if these reductions
    are over different dims, or if `op` reduces only these dims.
    """
    shape = tensor_type(op.input).dims
    seen: set[Operation] = {op}
    rows: list[Operation] = []
    axes: set[tuple[int, ...]] = set()
    left = [op.input]
    while left and len(seen) <= MAX_VISITED:
        owner = left.pop().owner
        if not isinstance(owner, Operation) or owner in seen:
            continue
        if isinstance(owner, Reduction) and has_elements(owner) and tensor_type(owner.operands[0]).dims == shape:
            rows.append(owner)
            axes.add(tuple(owner.reduced_axes()))
        elif not isinstance(owner, ScalarLike | FusedElementwiseOp | ReshapeOp):
            continue
        seen.add(owner)
        left += owner.operands
    if op.kind.data not in IN_PARTS or len(axes) != 1:
        return ()
    (found,) = axes
    is_inside = all(use.operation in seen for row in rows for r in row.results for use in r.uses)
    return found if is_inside and set(found) < set(op.axes()) else ()


def _divide(block: Block, op: ReduceOp, axes: Sequence[int]) -> None:
    """Reduce along `axes` first. Results of rows have at least 32 bits; only the last one is rounded to the type of the
    operand.
    """
    kind, element = op.kind.data, tensor_type(op.input).element_type
    others = [sum(i not in axes for i in range(axis)) for axis in op.axes() if axis not in axes]
    is_narrow = isinstance(element, Float16Type | BFloat16Type)
    new: list[Operation] = [CastOp(op.input, f32)] if is_narrow else []
    new.append(ReduceOp(kind, new[-1].results[0] if new else op.input, axes))
    new.append(last := ReduceOp(kind, new[-1].results[0], others))
    for each in new:
        each.location = op.location
        block.insert_op_before(each, op)
    result = last.output
    if is_narrow:
        wide = form_loops([result], {last}, scope_of(op))
        made = LoopsOp(list(wide.operands), wide.iterations.data, [tensor_type(op.output)], wide.detach_region(0))
        made.location = op.location
        block.insert_op_before(made, op)
        result = made.results[0]
        last.detach()
        last.erase()
    op.output.replace_all_uses_with(result)
    op.detach()
    op.erase()
