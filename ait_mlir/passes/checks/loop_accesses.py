"""Loops in the verifier of accesses: the range of offsets over all steps, and the buffers that steps share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from ait_mlir.dialects.ait_rt.buffers import BufferOp, CopyOp, root_of
from ait_mlir.dialects.ait_rt.loop import LoopOp, loops_around, program_ops
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.dims import Expr, Scope, const, from_terms


@dataclass(frozen=True)
class LoopEnd:
    """The end of a loop, in the order of a program's ops."""

    loop: LoopOp


def ops_and_ends(block: Block) -> Iterator[Operation | LoopEnd]:
    """The ops of a block in order, and after each loop the ops in it and then its end."""
    for op in block.ops:
        yield op
        if isinstance(op, LoopOp):
            yield from ops_and_ends(op.block)
            yield LoopEnd(op)


def over_steps(e: Expr, loops: Sequence[LoopOp], scope: Scope) -> tuple[Expr, Expr]:
    """`(lowest, highest)` of an expression over all steps of the loops, if each takes at least one step.

    If an expression is linear in a step, the first and the last step are enough. Otherwise, as in `step mod 2`, the
    bounds use the range of the step.
    """
    low = high = e
    for loop in reversed(loops):
        low, high = _end(low, loop, scope, highest=False), _end(high, loop, scope, highest=True)
    return low, high


def _end(e: Expr, loop: LoopOp, scope: Scope, highest: bool) -> Expr:
    slope, rest = _linear(e, loop.step)
    if scope.le(0, slope):
        rises = True
    elif scope.le(slope, 0):
        rises = False
    else:
        return e
    return rest + (slope * (loop.count - 1) if rises is highest else const(0))


def _linear(e: Expr, name: str) -> tuple[Expr, Expr]:
    """`(slope, rest)` with `e = slope * name + rest` and no `name` in the slope."""
    slope: list[tuple[int, tuple[object, ...]]] = []
    rest: list[tuple[int, tuple[object, ...]]] = []
    for coefficient, atoms in e.terms():
        steps = [a for a in atoms if a.op is None and a.name == name]
        others = tuple(a for a in atoms if a not in steps)
        if len(steps) == 1 and not any(name in a.expr().symbols for a in others):
            slope.append((coefficient, others))
        else:
            rest.append((coefficient, atoms))
    return from_terms(slope), from_terms(rest)  # pyright: ignore[reportArgumentType]


def moves_with(e: Expr, loop: LoopOp) -> bool:
    """Whether an offset differs in each step."""
    return _linear(e, loop.step)[0].as_int() != 0


def written_in(loop: LoopOp) -> set[Operation]:
    """The buffers that launches and copies in a loop write."""
    found: set[Operation] = set()
    for op in program_ops(loop.block):
        targets = op.outs if isinstance(op, LaunchOp) else [op.target] if isinstance(op, CopyOp) else []
        found.update(root for value in targets if (root := root_of(value)) is not None)
    return found


def read_problem(root: BufferOp, name: str, op: Operation) -> str | None:
    """The error if a read in loops may see data that another step writes."""
    for loop in _crossed(root, op):
        if root in written_in(loop) and not _is_carried(root, loop):
            return f"reads {name} in a loop the steps of which write it; the loop must carry it"
    return None


def write_problem(root: BufferOp, name: str, offset: Expr, op: Operation) -> str | None:
    """The error if a write in loops may overwrite data of another step."""
    for loop in _crossed(root, op):
        if not _is_carried(root, loop) and not moves_with(offset, loop):
            return f"writes the same part of {name} in each step of a loop, which does not carry it"
    return None


def _crossed(root: BufferOp, op: Operation) -> list[LoopOp]:
    """The loops around an op, but not around the buffer that it uses."""
    return loops_around(op)[len(loops_around(root)) :]


def _is_carried(root: BufferOp, loop: LoopOp) -> bool:
    return any(value.owner is root for value in loop.carry)


def still_unwritten(loop: LoopOp, written: set[Operation], before: set[Operation], scope: Scope) -> set[Operation]:
    """The buffers that a loop writes first and that stay unwritten if the loop takes no step.

    A buffer with the loop's length as a dim does not count: it has no elements then.
    """
    if scope.le(1, loop.count):
        return set()
    return {
        op
        for op in written - before
        if isinstance(op, BufferOp) and not any(scope.equal(dim, loop.count) for dim in op.buffer_type.dims)
    }
