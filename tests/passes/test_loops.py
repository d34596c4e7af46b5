"""Loops of launches: what the passes make of scans, what the verifiers refuse, and that they agree with the
interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dialects.ait_rt.buffers import AllocOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.ir.pipeline import PassError
from ait_mlir.ir.source import SourceText
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.checks.verify_plan import verify_accesses, verify_program
from ait_mlir.passes.lifetimes import lifetimes
from ait_mlir.passes.pipelines import passes_between
from ait_mlir.reference import EvaluationError, run_program
from tests.e2e.scans import SCANS
from tests.lit.runner import run_ait_opt

KERNEL = """
ait_rt.kernel @neg_0 "native" {} (%a: !ait.tensor<8 x f32>) dims {seq = 0 to 9} {
  %0 = ait.neg %a : !ait.tensor<8 x f32>
  ait_rt.return %0 : !ait.tensor<8 x f32>
}
"""
BUFFERS = """
  %x = ait_rt.input "x" : !ait_rt.buffer<seq x 8 x f32>
  %y = ait_rt.output "y" : !ait_rt.buffer<seq x 8 x f32>
  %c = ait_rt.alloc at (0) : !ait_rt.buffer<2 x 64 x f32>
  %a = ait_rt.alloc at (512) : !ait_rt.buffer<8 x f32>
"""


def program(text: str) -> ProgramOp:
    """A planned program; `NEG a b` is a launch, `VIEW v b offset` a view of 8 elements."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        match line.split(maxsplit=3):
            case ["NEG", source, target]:
                line = f"ait_rt.launch @neg_0 ins(%{source}) outs(%{target}) workspace() stream 0"
            case ["VIEW", name, source, offset]:
                line = f"%{name} = ait_rt.view %{source} offset ({offset}) strides [1] : !ait_rt.buffer<8 x f32>"
            case _:
                pass
        lines.append(line)
    body = BUFFERS + "\n".join(lines)
    module = parse_text(context(), f"{KERNEL}ait_rt.program @p dims {{seq = 0 to 9}} arena (1024) {{{body}\n}}\n")
    check(module, SourceText("p.mlir", body))
    return next(op for op in module.ops if isinstance(op, ProgramOp))


EACH = """
ait_rt.loop step to (seq) {
  VIEW xt x 8*step
  VIEW yt y 8*step
  NEG xt yt
}"""


def test_each_step_reads_and_writes_a_slice() -> None:
    verify_accesses(program(EACH))
    verify_accesses(program(EACH.replace("8*step", "8*seq - 8*step - 8")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EACH.replace("xt x 8*step", "xt x 8*step + 8"), r"input 'x' reaches element 8\*seq \+ 7"),
        (EACH.replace("xt x 8*step", "xt x 8*seq - 8*step - 16"), r"offset 8\*seq - 8\*step - 16 .* at least 0"),
        (EACH.replace("yt y 8*step", "yt y 0"), "reaches element 7, which is not proved to be one of its"),
        (EACH.replace("NEG xt yt", "VIEW v c 64*(step mod 3)"), r"%c reaches element 64\*\(step mod 3\) \+ 7"),
        (EACH.replace("NEG xt yt", "NEG xt a"), "writes the same part of %a in each step of a loop"),
        (EACH.replace("NEG xt yt", "NEG xt yt\n  NEG yt a"), "reads output 'y' in a loop the steps of which write it"),
        (
            EACH.replace("NEG xt yt", "%b = ait_rt.alloc at (576) : !ait_rt.buffer<8 x f32>\n NEG b yt\n NEG yt b"),
            "reads %b, which nothing has written yet",  # though the step before wrote it
        ),
        (
            EACH.replace("to (seq)", "to (seq) carry(%c)").replace("NEG xt yt", "VIEW v c 64*(step mod 2)\n  NEG xt v")
            + "\nVIEW last c 64*(seq mod 2)\nNEG last a",
            "reads %c, which nothing has written yet",  # where there is no step
        ),
        (EACH.replace("NEG xt yt", "NEG xt xt"), "writes input 'x'"),
        (EACH.replace("VIEW yt", "VIEW v a 0\n  NEG xt v\n  VIEW yt"), "writes the same part of %a"),
    ],
)
def test_what_a_step_may_not_touch(text: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        verify_accesses(program(text))


def test_a_carried_buffer_is_read_where_the_step_before_wrote_it() -> None:
    text = """
ait_rt.loop step to (seq) carry(%c) {
  VIEW old c 64*(step mod 2)
  VIEW new c 64*((step + 1) mod 2)
  NEG old new
}
"""
    with pytest.raises(PassError, match="reads %c, which nothing has written yet"):
        verify_accesses(program(text))
    begin = "%z = ait_rt.constant value 0.0 : !ait_rt.buffer<8 x f32>\nVIEW first c 0\nNEG z first\n"
    verify_accesses(program(begin + text + EACH.replace("step", "i")))


def test_a_buffer_that_a_loop_uses_is_needed_in_all_of_it() -> None:
    found = program("""
VIEW first c 0
ait_rt.loop once to (1) {
  VIEW x0 a 0
  NEG first x0
}
ait_rt.loop step to (seq) {
  %b = ait_rt.alloc at (576) : !ait_rt.buffer<8 x f32>
  %d = ait_rt.alloc at (576) : !ait_rt.buffer<8 x f32>
  NEG a b
  VIEW yt y 8*step
  NEG b yt
  NEG b d
}
""")
    spans = {life.alloc.buffer.name_hint: (life.start, life.end) for life in lifetimes(found)}
    ops = list(found.body.walk())
    loops = [i for i, op in enumerate(ops) if op.name == "ait_rt.loop"]
    assert spans["c"] == (loops[0], loops[1])  # all of the first loop, through the view
    assert spans["a"] == (loops[0], len(ops))  # the next step reads it again
    assert spans["b"][0] > loops[1] and spans["b"][1] == len(ops)
    assert spans["d"] == (len(ops) - 1, len(ops))
    with pytest.raises(PassError, match=r"buffers '%b .*' and '%d .*' are both live"):
        verify_program(found)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("name", SCANS)
def test_passes_keep_the_meaning(name: str, target: str) -> None:
    passes = passes_between("imported", "planned", target)
    outcome = run_ait_opt(["-", "--check-semantics", "-p", passes], SCANS[name])
    assert outcome.code == 0 and "no difference" in outcome.stderr, outcome.stderr


def moved(found: ProgramOp) -> Iterator[str]:
    """Give each allocation the place of another one, one after the other."""
    allocs = [op for op in found.body.walk() if isinstance(op, AllocOp)]
    for op in allocs:
        kept = op.at
        assert kept is not None
        for other in allocs:
            if other.at is not None and other.at is not kept:
                op.offset = ShapeAttr((other.at,))
                yield f"%{op.buffer.name_hint} at {other.at}"
        op.offset = ShapeAttr((kept,))


def test_the_verifier_refuses_what_the_interpreter_objects_to() -> None:
    wrong = 0
    for name, text in SCANS.items():
        planned = run_ait_opt(["-", "-p", passes_between("imported", "planned", "cpu")], text).stdout
        module = parse_text(context(), planned)
        found = next(op for op in module.ops if isinstance(op, ProgramOp))
        checker = SemanticsChecker(module, budget=1)
        dims = {"b": 2, "s": 3}
        for what in moved(found):
            try:
                outputs = run_program(module, found, checker.inputs(found, dims), checker.params, dims)
                broken = any(np.isnan(array).any() for array in outputs.values())
            except EvaluationError:
                broken = True
            if broken:
                wrong += 1
                with pytest.raises(PassError, match="the memory plan of @g is wrong"):
                    verify_program(found)
                    pytest.fail(f"{name}: {what}: the interpreter objects, the verifier does not")
    assert wrong >= 10
