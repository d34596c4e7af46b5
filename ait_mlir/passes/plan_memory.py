"""Give every allocation its place in the arena."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dialects.ait_rt.buffers import AllocOp
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.passes.lifetimes import lifetimes
from ait_mlir.passes.memory import Buffer, plan
from ait_mlir.passes.verify_plan import verify_program


def plan_program(program: ProgramOp) -> None:
    """Set `at` on every allocation and `arena` on the program; remove unused allocations."""
    spans = lifetimes(program)
    used = {life.alloc for life in spans}
    unused = [a for a in program_ops(program.block) if isinstance(a, AllocOp) and a not in used and not _is_used(a)]
    sizes = (program.scope.upper(span.alloc.buffer_type.byte_size()) for span in spans)
    buffers = [Buffer(i, s.start, s.end, size) for i, (s, size) in enumerate(zip(spans, sizes, strict=True))]
    result = plan(buffers, program.scope)
    for i, life in enumerate(spans):
        life.alloc.properties["offset"] = ShapeAttr((result.offsets[i],))
    program.properties["arena"] = ShapeAttr((result.arena,))
    for op in unused:
        op.detach()
        op.erase()


def _is_used(alloc: AllocOp) -> bool:
    return alloc.buffer.first_use is not None


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Let allocations with disjoint lifetimes share memory (greedy by size, arXiv:2001.03288); verify the plan."""

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.ops:
            if isinstance(program, ProgramOp):
                plan_program(program)
                verify_program(program)
