"""Proves that live buffers of a planned program never overlap, and that views stay inside their buffers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Expr
from ait_mlir.ir.pipeline import PassError, TellingPass
from ait_mlir.passes.checks.accesses import access_problems
from ait_mlir.passes.checks.memory_plan import verify
from ait_mlir.passes.checks.races import ends_beside, event_problems, races
from ait_mlir.passes.lifetimes import in_text_order
from ait_mlir.passes.memory import Buffer
from ait_mlir.passes.step_order import has_streams


def verify_program(program: ProgramOp) -> None:
    """Raise `PassError` at the program unless its memory plan is proved correct for all dims."""
    buffers: list[Buffer] = []
    offsets: dict[int | str, Expr] = {}
    ends = ends_beside(program) if has_streams(program) else {}
    for i, life in enumerate(in_text_order(program)):
        at = life.alloc.at
        name = life.alloc.buffer.name_hint
        key = f"%{name} (allocation {i})" if name else f"allocation {i}"
        if at is None:
            raise PassError(f"{key} has no place yet; run the pass 'plan-memory' first", life.alloc)
        end = max(life.end, ends.get(life.alloc, 0))
        buffers.append(Buffer(key, life.start, end, program.scope.upper(life.alloc.buffer_type.byte_size())))
        offsets[key] = at
    problems = verify(buffers, offsets, program.arena_size, program.scope)
    if problems:
        raise PassError(f"the memory plan of @{program.sym_name.data} is wrong: {'; '.join(problems)}", program)


def verify_accesses(program: ProgramOp) -> None:
    """Raise `PassError` at the first view, launch or copy with an invalid access."""
    for problem, op in access_problems(program):
        raise PassError(f"{op.name}: {problem}", op)


def verify_streams(program: ProgramOp) -> None:
    """Raise `PassError` at the first wrong event or the first launch that races with another launch."""
    for problems in (event_problems, races):
        for problem, op in problems(program):
            raise PassError(problem, op)


@dataclass(frozen=True)
class VerifyPlanPass(TellingPass):
    """Check the memory plan, with a verifier that shares no code with the planner, and the accesses of launches and
    views. With streams, events must order all accesses to the same memory if one of them is a write."""

    name = "verify-plan"

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        for program in module.ops:
            if isinstance(program, ProgramOp):
                verify_streams(program)
                verify_program(program)
                verify_accesses(program)
        return False
