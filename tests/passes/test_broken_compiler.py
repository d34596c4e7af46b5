"""--check-semantics finds a compiler that is wrong: pattern files, candidates, bufferisation, copies, the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dialects.ait_rt.buffers import AllocOp, ConstantOp, ViewOp
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.dims import const
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.lowering.candidates import cut_in_place
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import passes_between
from tests.lit.runner import run_ait_opt

TEXT = """
ait.graph @g(%x: !ait.tensor<b x 8 x f16>) dims {b = 2 to 4} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f16>
  %v = ait.param "v" : !ait.tensor<8 x 8 x f16>
  %c = ait.param "c" : !ait.tensor<8 x f16>
  %r = ait.param "r" : !ait.tensor<8 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%c, %r) {
  ^bb0(%acc: f32, %1: f32, %2: f32):
    %3 = ait.add %acc, %1 : f32
    %4 = ait.gelu %3 : f32
    %5 = ait.sub %4, %2 : f32
    %6 = ait.mul %5, %1 : f32
    ait.yield %6 : f32
  } : !ait.tensor<b x 8 x f16>
  %7 = ait.softmax %0 dim 1 : !ait.tensor<b x 8 x f16>
  %8 = ait.gemm rcr %7, %v : !ait.tensor<b x 8 x f16>
  %9, %10 = ait.split %8 dim 1 : !ait.tensor<b x 3 x f16>, !ait.tensor<b x 5 x f16>
  %11 = ait.concat %10, %9, %7 dim 1 : !ait.tensor<b x 16 x f16>
  %12 = ait.softmax %11 dim 0 : !ait.tensor<b x 16 x f16>
  ait.output "y" %12 : !ait.tensor<b x 16 x f16>
}
"""

PATTERN = """
pdl.pattern @sub_is_add : benefit(1) {
  %x = pdl.operand
  %y = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.sub"(%x, %y : !pdl.value, !pdl.value) -> (%t : !pdl.type)
  pdl.rewrite %root {
    %neg = pdl.operation "ait.neg"(OPERAND : !pdl.value) -> (%t : !pdl.type)
    %n = pdl.result 0 of %neg
    %new = pdl.operation "ait.add"(REST, %n : !pdl.value, !pdl.value) -> (%t : !pdl.type)
    pdl.replace %root with %new
  }
}
"""


def differences(until: str, change: Callable[[ModuleOp], None], target: str = "cpu") -> list[str]:
    """The checker's report of a change to the module at a phase, made by a separate pass."""
    ctx = context()
    module = parse_text(ctx, TEXT)
    run_passes(ctx, module, parse_passes(passes_between("imported", until, target)))
    checker = SemanticsChecker(module)
    change(module)
    return [str(d) for d in checker.after("broken", module)]


def test_the_whole_pipeline_is_right() -> None:
    for target in ("cpu", "cuda"):
        ctx = context()
        module = parse_text(ctx, TEXT)
        checker = SemanticsChecker(module)

        def observe(p: ModulePass, m: ModuleOp, seconds: float, checker: Any = checker, ctx: Any = ctx) -> None:
            assert not checker.after(p.name, m, lambda copy: p.apply(ctx, copy))

        run_passes(ctx, module, parse_passes(passes_between("imported", "planned", target)), observe=observe)


def test_a_wrong_pattern_file(tmp_path: Path) -> None:
    file, model = tmp_path / "patterns.mlir", tmp_path / "g.mlir"
    model.write_text(
        "ait.graph @g(%x: !ait.tensor<b x f32>, %y: !ait.tensor<b x f32>) dims {b = 1 to 4} {\n"
        "  %0 = ait.sub %x, %y : !ait.tensor<b x f32>\n"
        '  ait.output "z" %0 : !ait.tensor<b x f32>\n}\n'
    )
    passes = f'apply-patterns{{file="{file}"}}'
    file.write_text(PATTERN.replace("OPERAND", "%y").replace("REST", "%x"))
    right = run_ait_opt([str(model), "-p", passes, "--check-semantics"])
    assert right.code == 0 and "ait.add" in right.stdout and "no difference" in right.stderr
    file.write_text(PATTERN.replace("OPERAND", "%x").replace("REST", "%y"))
    wrong = run_ait_opt([str(model), "-p", passes, "--check-semantics"])
    assert wrong.code == 1 and wrong.stdout == ""
    place = "g.mlir:2:3: error: pass 'apply-patterns' changes the meaning of @g at b = 1: output 'z': 1 of 1 elements differ"
    assert place in wrong.stderr


def first(module: ModuleOp, kind: type[Operation], number: int = 0) -> Any:
    return [op for op in module.walk() if isinstance(op, kind)][number]


def cut_and(spoil: Callable[[ContractionOp, Operation], None]) -> Callable[[ModuleOp], None]:
    """Cut the epilogue after its first op, as a candidate of selection, and spoil one of its parts."""

    def change(module: ModuleOp) -> None:
        gemm, rest = cut_in_place(first(module, ContractionOp), "epilogue 1")
        assert isinstance(gemm, ContractionOp)
        spoil(gemm, rest)

    return change


def swap_extras(gemm: ContractionOp, rest: Operation) -> None:
    rest.operands[1], rest.operands[2] = rest.operands[2], rest.operands[1]


def forget_head(gemm: ContractionOp, rest: Operation) -> None:
    gemm.operands[2] = rest.operands[1]


def read_operand_for_result(gemm: ContractionOp, rest: Operation) -> None:
    rest.operands[0] = gemm.a


def test_a_candidate_as_it_is() -> None:
    assert not differences("fused", cut_and(lambda gemm, rest: None))


@pytest.mark.parametrize("spoil", [swap_extras, forget_head, read_operand_for_result])
def test_a_wrong_candidate(spoil: Callable[[ContractionOp, Operation], None]) -> None:
    found = differences("fused", cut_and(spoil))
    assert found and "output 'y': " in found[0] and "elements differ" in found[0]


def test_every_cut_keeps_the_meaning() -> None:
    for cut in range(4):
        assert not differences(
            "fused", lambda m, cut=cut: (cut_in_place(first(m, ContractionOp), f"epilogue {cut}"), None)[1]
        )


def offset(kind: type[Operation], number: int, value: int) -> Callable[[ModuleOp], None]:
    def change(module: ModuleOp) -> None:
        first(module, kind, number).properties["offset"] = ShapeAttr((const(value),))

    return change


def change_strides(module: ModuleOp) -> None:
    view = first(module, ViewOp)
    view.properties["strides"] = ShapeAttr((const(1), const(1)))


def drop_launch(module: ModuleOp) -> None:
    launch = first(module, LaunchOp, 1)
    launch.detach()


def swap_launches(module: ModuleOp) -> None:
    a, b = first(module, LaunchOp, 0), first(module, LaunchOp, 1)
    block = a.parent
    a.detach()
    block.insert_op_after(a, b)


def swap_operands(module: ModuleOp) -> None:
    launch = next(op for op in module.walk() if isinstance(op, LaunchOp) and len(op.ins) > 3)
    launch.operands[2], launch.operands[3] = launch.operands[3], launch.operands[2]


def rename_constant(module: ModuleOp) -> None:
    from xdsl.dialects.builtin import ArrayAttr, StringAttr

    op = next(op for op in module.walk() if isinstance(op, ConstantOp) and op.param_names() == ["v"])
    op.properties["params"] = ArrayAttr([StringAttr("w")])


def change_kernel(module: ModuleOp) -> None:
    op = next(op for op in module.walk() if op.name == "ait.softmax")
    op.properties["dim"] = type(op.properties["dim"])(0, op.properties["dim"].type)  # type: ignore[attr-defined, call-arg]


def everything_at_zero(module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, AllocOp):
            op.properties["offset"] = ShapeAttr((const(0),))


WRONG = {
    "a view elsewhere": ("bufferized", offset(ViewOp, 0, 1)),
    "other strides": ("bufferized", change_strides),
    "a launch left out": ("bufferized", drop_launch),
    "launches in another order": ("bufferized", swap_launches),
    "operands changed over": ("bufferized", swap_operands),
    "another param": ("bufferized", rename_constant),
    "another kernel": ("bufferized", change_kernel),
    "all buffers in one place": ("planned", everything_at_zero),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_wrong_program(name: str, target: str) -> None:
    phase, change = WRONG[name]
    found = differences(phase, change, target)
    assert found, "no difference was found"
    assert found[0].startswith("pass 'broken' changes the meaning of @g at b = 2: ")
