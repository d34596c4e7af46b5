"""A planned program with one offset changed: the verifier refuses it, and the interpreter shows why, both on their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dialects.ait_rt.buffers import AllocOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Expr
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import PassError
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.checks.verify_plan import verify_program
from ait_mlir.passes.pipelines import passes_between
from ait_mlir.reference import EvaluationError, run_program
from tests.lit.runner import run_ait_opt

ROOT = Path(__file__).parents[2]
DIMS = {"batch": 2, "seq": 3}


@cache
def planned(name: str) -> str:
    """An example, planned for the CPU, with all widths divided by 32 so that it runs fast."""
    text = (ROOT / "examples" / name).read_text()
    for wide, narrow in ((" 3072 x", " 96 x"), ("<3072 x", "<96 x"), (" 768 x", " 24 x"), ("<768 x", "<24 x")):
        text = text.replace(wide, narrow)
    text = text.replace(" 12 x 64 x", " 3 x 8 x").replace(" 12 x", " 3 x").replace(" 64 x", " 8 x")
    outcome = run_ait_opt(["-", "-p", passes_between("imported", "planned", "cpu")], text)
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout


def changed(name: str) -> Iterator[tuple[str, str, ProgramOp, SemanticsChecker]]:
    """Every program that comes of giving one allocation the offset of another, or one a little further on."""
    module = parse_text(context(), planned(name))
    checker = SemanticsChecker(module, budget=1)
    program = next(op for op in module.ops if isinstance(op, ProgramOp))
    allocs = [op for op in program.block.ops if isinstance(op, AllocOp)]
    places = {at: None for op in allocs if (at := op.at) is not None}
    for i, op in enumerate(allocs):
        kept = op.at
        assert kept is not None
        for at in (*places, *(place + 64 for place in places)):
            if at is kept:
                continue
            op.offset = ShapeAttr((at,))
            yield f"allocation {i} at {kept}", str(at), program, checker
        op.offset = ShapeAttr((kept,))


def refused(program: ProgramOp) -> bool:
    try:
        verify_program(program)
    except PassError:
        return True
    return False


@pytest.mark.parametrize("name", ["ffn.mlir", "bert_layer.mlir"])
def test_verifier_and_interpreter_agree(name: str) -> None:
    wrong = tried = 0
    for what, at, program, checker in changed(name):
        tried += 1
        inputs = checker.inputs(program, DIMS)
        module = program.parent_op()
        assert module is not None
        try:
            outputs = run_program(module, program, inputs, checker.params, DIMS)  # type: ignore[arg-type]
            broken = any(np.isnan(array).any() for array in outputs.values())
        except EvaluationError as e:
            assert "over its operand" in str(e) or "outside of its buffer" in str(e), str(e)
            broken = True
        if broken:
            wrong += 1
            assert refused(program), f"{what} moved to {at}: the interpreter objects, the verifier does not"
    assert wrong >= 1 if name == "ffn.mlir" else wrong >= 10, f"{wrong} of {tried}"


def test_the_plan_as_it_is() -> None:
    for name in ("ffn.mlir", "bert_layer.mlir"):
        module = parse_text(context(), planned(name))
        program = next(op for op in module.ops if isinstance(op, ProgramOp))
        verify_program(program)
        checker = SemanticsChecker(module, budget=1)
        outputs = run_program(module, program, checker.inputs(program, DIMS), checker.params, DIMS, strict=True)
        assert all(np.isfinite(array.astype(np.float64)).all() for array in outputs.values())


def test_offsets_are_dim_expressions() -> None:
    module = parse_text(context(), planned("bert_layer.mlir"))
    offsets: list[Expr] = [op.at for op in module.walk() if isinstance(op, AllocOp) and op.at is not None]
    assert any({"batch", "seq"} <= e.symbols for e in offsets)
