"""Give every allocation its place in the arena."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dialects.ait_rt.buffers import AllocOp
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Scope
from ait_mlir.ir.pipeline import PassError
from ait_mlir.passes.lifetimes import Lifetime, lifetimes
from ait_mlir.passes.memory import Buffer, Plan, naive, plan
from ait_mlir.passes.verify_plan import verify_program

Planner = Callable[[list[Buffer], Scope], Plan]

STRATEGIES: dict[str, Planner] = {
    "naive": naive,
    "greedy": plan,
}


def plan_program(program: ProgramOp, planner: Planner = plan) -> Plan:
    """Set `at` on every allocation and `arena` on the program; remove unused allocations."""
    spans = lifetimes(program)
    used = {life.alloc for life in spans}
    unused = [a for a in program_ops(program.block) if isinstance(a, AllocOp) and a not in used and not _is_used(a)]
    result = planner(planned_buffers(program, spans), program.scope)
    for i, life in enumerate(spans):
        life.alloc.properties["offset"] = ShapeAttr((result.offsets[i],))
    program.properties["arena"] = ShapeAttr((result.arena,))
    for op in unused:
        op.detach()
        op.erase()
    return result


def planned_buffers(program: ProgramOp, spans: list[Lifetime]) -> list[Buffer]:
    """What the planner gets: the lifetimes with their largest sizes where an op binds a dim."""
    sizes = (program.scope.upper(span.alloc.buffer_type.byte_size()) for span in spans)
    return [Buffer(i, s.start, s.end, size) for i, (s, size) in enumerate(zip(spans, sizes, strict=True))]


def _is_used(alloc: AllocOp) -> bool:
    return alloc.buffer.first_use is not None


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Let allocations with disjoint lifetimes share memory; verify the plan.

    `strategy` is `naive` (nothing shares) or `greedy` (by size, arXiv 2001.03288). `report=true` prints the arena and
    whether it is proved to be the smallest.
    """

    name = "plan-memory"

    strategy: str = "greedy"
    report: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.strategy not in STRATEGIES:
            raise PassError(f"unknown strategy {self.strategy!r}; expected one of {', '.join(STRATEGIES)}")
        for program in op.ops:
            if isinstance(program, ProgramOp):
                made = plan_program(program, STRATEGIES[self.strategy])
                verify_program(program)
                if self.report:
                    print(summary(program, made), file=sys.stderr)


def summary(program: ProgramOp, made: Plan) -> str:
    """One line: the arena at the largest dims, and what is known about it."""
    arena = made.arena.evaluate(program.scope.maximum_env())
    known = "proved to be the smallest" if made.optimal else f"at least {made.peak} are needed"
    return f"@{program.sym_name.data}: an arena of {arena} bytes; {known}"
