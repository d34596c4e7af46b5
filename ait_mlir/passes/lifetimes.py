"""When each allocation of a program is needed, in positions of the program's ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait_rt.buffers import AllocOp, ViewOp
from ait_mlir.dialects.ait_rt.program import ProgramOp


@dataclass(frozen=True)
class Lifetime:
    """An allocation and the half-open span `[start, end)` of op positions in which its bytes are its own."""

    alloc: AllocOp
    start: int
    end: int


def lifetimes(program: ProgramOp) -> list[Lifetime]:
    """The lifetime of every allocation: from its first use to its last, through views. Unused ones have none."""
    root: dict[SSAValue, AllocOp] = {}
    span: dict[AllocOp, tuple[int, int]] = {}
    for position, op in enumerate(program.block.ops):
        if isinstance(op, AllocOp):
            root[op.buffer] = op
        elif isinstance(op, ViewOp):
            if op.source in root:
                root[op.buffer] = root[op.source]
        else:
            for operand in op.operands:
                if (alloc := root.get(operand)) is not None:
                    start, _ = span.get(alloc, (position, position))
                    span[alloc] = (start, position + 1)
    return [Lifetime(alloc, start, end) for alloc, (start, end) in span.items()]
