"""Gives every allocation its place in the arena."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dialects.ait_rt.buffers import AllocOp
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Scope
from ait_mlir.ir.pipeline import PassError
from ait_mlir.passes.checks.verify_plan import verify_program
from ait_mlir.passes.lifetimes import Lifetime, lifetimes
from ait_mlir.passes.memory import Buffer, Plan, naive, plan
from ait_mlir.passes.memory.exact import Exact, MissingSolver
from ait_mlir.passes.memory.search import Search

Planner = Callable[[list[Buffer], Scope], Plan]

STRATEGIES = ("naive", "greedy", "search", "exact")


def planner_of(strategy: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> Planner:
    """A planner for one program; its time counts from now."""
    match strategy:
        case "naive":
            return naive
        case "search" | "exact":
            limited = Exact(seconds, clock) if strategy == "exact" else Search(seconds, clock)
            return lambda buffers, scope: replace(plan(buffers, scope, limited), stopped=limited.stopped)
        case _:
            return plan


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
    """The buffers for the planner: lifetimes and sizes, where dims that ops bind are at their upper bound."""
    sizes = (program.scope.upper(span.alloc.buffer_type.byte_size()) for span in spans)
    return [Buffer(i, s.start, s.end, size) for i, (s, size) in enumerate(zip(spans, sizes, strict=True))]


def _is_used(alloc: AllocOp) -> bool:
    return alloc.buffer.first_use is not None


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Let allocations with disjoint lifetimes share memory; verify the plan.

    `strategy` is one of

    - `naive`: no sharing;
    - `greedy`: by size, arXiv 2001.03288;
    - `search`: greedy, then a search of at most `seconds` for a smaller arena;
    - `exact`: `search`, then CP-SAT of OR-Tools (`pip install ait_mlir[planner]`), which can prove an arena the
    smallest.

    `report=true` prints the arena and whether it is proved to be the smallest. It is also printed if time ran out.
    """

    name = "plan-memory"

    strategy: str = "greedy"
    seconds: int | float = 10
    report: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.strategy not in STRATEGIES:
            raise PassError(f"unknown strategy {self.strategy!r}; expected one of {', '.join(STRATEGIES)}")
        if not 0 <= self.seconds < math.inf:
            raise PassError(f"seconds is {self.seconds}, expected a number from 0 on")
        for program in op.ops:
            if isinstance(program, ProgramOp):
                try:
                    made = plan_program(program, planner_of(self.strategy, self.seconds))
                except MissingSolver as error:
                    raise PassError(str(error), program) from error
                verify_program(program)
                if self.report or made.stopped:
                    print(summary(program, made), file=sys.stderr)


def summary(program: ProgramOp, made: Plan) -> str:
    """A line for the report: the arena at the largest dims, and the proved lower bound."""
    arena = made.arena.evaluate(program.scope.maximum_env())
    known = "proved to be the smallest" if made.optimal else f"at least {made.peak} are needed"
    stopped = "; the best that was found before the time limit" if made.stopped else ""
    return f"@{program.sym_name.data}: an arena of {arena} bytes; {known}{stopped}"
