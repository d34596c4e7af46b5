"""The lifetime of each allocation of a program, in positions of the program's ops."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait_rt.buffers import AllocOp, ViewOp
from ait_mlir.dialects.ait_rt.loop import LoopOp, loops_around, program_ops
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.passes.step_order import Order, has_streams, steps_of, users_of

Span = tuple[int, int]


@dataclass(frozen=True)
class Lifetime:
    """An allocation and the half-open span `[start, end)` of op positions during which it owns its bytes."""

    alloc: AllocOp
    start: int
    end: int


def lifetimes(program: ProgramOp) -> list[Lifetime]:
    """The lifetime of every allocation: from its first use to its last, through views. Unused allocations have none.

    With streams, it lasts to the last step of the program that does not happen after all of its uses. Allocations whose
    lifetimes begin later can then use its bytes.
    """
    found = in_text_order(program)
    if not has_streams(program):
        return found
    steps = steps_of(program)
    order, users = Order(program, steps), users_of(steps)
    return [replace(life, end=max(life.end, 1 + order.last_beside(users[life.alloc]))) for life in found]


def in_text_order(program: ProgramOp) -> list[Lifetime]:
    """The lifetime of every allocation if all launches run in the order of the text.

    Positions count the ops of loops, too. An allocation outside of a loop that the loop uses is live during the whole
    loop, because the next step starts over. An allocation in a loop is new in every step.
    """
    positions = {op: i for i, op in enumerate(program_ops(program.block))}
    root: dict[SSAValue, AllocOp] = {}
    span: dict[AllocOp, Span] = {}
    for position, op in enumerate(positions):
        if isinstance(op, AllocOp):
            root[op.buffer] = op
        elif isinstance(op, ViewOp):
            if op.source in root:
                root[op.buffer] = root[op.source]
        else:
            for alloc in {root[v]: None for v in op.operands if v in root}:
                first, last = _needed(op, position, alloc.parent, positions)
                start, end = span.get(alloc, (first, last))
                span[alloc] = (min(start, first), max(end, last))
    return [Lifetime(alloc, start, end) for alloc, (start, end) in span.items()]


def _needed(op: Operation, position: int, block: Block | None, positions: dict[Operation, int]) -> Span:
    """The positions for which a use keeps an allocation in `block` live: the position of the op, or the whole of the
    loop in `block` that contains it."""
    around = [*loops_around(op), *([op] if isinstance(op, LoopOp) else [])]
    loop = next((loop for loop in around if loop.parent is block), None)
    if loop is None:
        return position, position + 1
    start = positions[loop]
    return start, start + 1 + sum(1 for _ in program_ops(loop.block))
