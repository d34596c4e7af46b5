"""--check-semantics finds what broken passes do, and says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, StringAttr, f64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.passes.checks.check_semantics import Point, SemanticsChecker
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES, Pass, passes_between
from tests import tiers
from tests.lit.runner import run_ait_opt

ROOT = Path(__file__).parents[2]

TEXT = """
ait.graph @g(%x: !ait.tensor<b x s x f16>, %ids: !ait.tensor<b x i64>) dims {b = 1 to 4, s = 2 to 9} {
  %c = ait.constant 0.5 : !ait.tensor<f16>
  %t = ait.param "table" : !ait.tensor<7 x 4 x f16>
  %0 = ait.mul %x, %c : !ait.tensor<b x s x f16>
  %1 = ait.sub %x, %0 : !ait.tensor<b x s x f16>
  %2 = ait.softmax %1 dim 1 : !ait.tensor<b x s x f16>
  %3 = ait.embedding %t, %ids : !ait.tensor<b x 4 x f16>
  %4 = ait.permute %x [1, 0] : !ait.tensor<s x b x f16>
  ait.output "y" %2 : !ait.tensor<b x s x f16>
  ait.output "rows" %3 : !ait.tensor<b x 4 x f16>
  ait.output "turned" %4 : !ait.tensor<s x b x f16>
}
"""


def op_of(module: ModuleOp, name: str) -> Operation:
    return next(op for op in module.walk() if op.name == name)


def constant(value: float) -> Callable[[ModuleOp], None]:
    def change(module: ModuleOp) -> None:
        op_of(module, "ait.constant").properties["value"] = FloatAttr(value, f64)

    return change


def swap_operands(module: ModuleOp) -> None:
    op = op_of(module, "ait.sub")
    op.operands = [op.operands[1], op.operands[0]]


def use_input(name: str) -> Callable[[ModuleOp], None]:
    """Replace the result of an op by the input of the same type."""

    def change(module: ModuleOp) -> None:
        op = op_of(module, name)
        block = op.parent
        assert block is not None
        op.results[0].replace_all_uses_with(block.args[0])

    return change


def rename_output(module: ModuleOp) -> None:
    op_of(module, "ait.output").properties["output_name"] = StringAttr("z")


def rename_graph(module: ModuleOp) -> None:
    op_of(module, "ait.graph").properties["sym_name"] = StringAttr("h")


def rename_param(module: ModuleOp) -> None:
    op_of(module, "ait.param").properties["param_name"] = StringAttr("other")


BROKEN = {
    "another constant": (constant(0.6), "output 'y': .* elements differ, most at"),
    "swapped operands": (swap_operands, "output 'y': .* elements differ"),
    "a dropped op": (use_input("ait.mul"), "output 'y': "),
    "a dropped softmax": (use_input("ait.softmax"), "output 'y': .* elements differ"),
    "a renamed output": (rename_output, "output 'y' is gone"),
    "a renamed graph": (rename_graph, "b = 1, s = 2: it is gone"),
    "a renamed param": (rename_param, "no value for parameter 'other'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pass_is_found(name: str) -> None:
    change, pattern = BROKEN[name]
    module = parse_text(context(), TEXT)
    checker = SemanticsChecker(module)
    change(module)
    found = checker.after("broken", module, change)
    assert found == checker.differences and found
    with pytest.raises(AssertionError, match=f"pass 'broken' changes the meaning of @g at .*{pattern}"):
        raise AssertionError(str(found[0]))


def test_a_pass_that_keeps_the_meaning() -> None:
    module = parse_text(context(), TEXT)
    checker = SemanticsChecker(module)

    def halve(m: ModuleOp) -> None:  # x - x/2 = x/2
        op_of(m, "ait.sub").results[0].replace_all_uses_with(op_of(m, "ait.mul").results[0])

    halve(module)
    assert not checker.after("halve", module, halve)
    assert checker.checks == 4 + 4  # minimum, maximum, middle twice; ones, zeros, each dim at zero
    assert not checker.skipped


GELU = """
ait.graph @g(%x: !ait.tensor<b x 9 x f32>) dims {b = 1 to 4} {
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %one = ait.constant 1.0 : !ait.tensor<f16>
  %r = ait.constant 0.70703125 : !ait.tensor<f16>
  %a = ait.cast %x : !ait.tensor<b x 9 x bf16>
  %h = ait.cast %a : !ait.tensor<b x 9 x f16>
  %0 = ait.mul %h, %r : !ait.tensor<b x 9 x f16>
  %1 = ait.erf %0 : !ait.tensor<b x 9 x f16>
  %2 = ait.add %1, %one : !ait.tensor<b x 9 x f16>
  %3 = ait.mul %h, %half : !ait.tensor<b x 9 x f16>
  %4 = ait.mul %3, %2 : !ait.tensor<b x 9 x f16>
  %5 = ait.mul %h, %r : !ait.tensor<b x 9 x f16>
  ait.output "y" %4 : !ait.tensor<b x 9 x f16>
  ait.output "z" %5 : !ait.tensor<b x 9 x f16>
}
"""


def simplify(module: ModuleOp) -> None:
    for p in parse_passes("simplify"):
        p.apply(context(), module)
    assert op_of(module, "ait.gelu")


def drop_a_cast(module: ModuleOp) -> None:
    first, second = (op for op in module.walk() if op.name == "ait.cast")
    second.operands = [first.operands[0]]


def number(old: float, new: float) -> Callable[[ModuleOp], None]:
    def change(module: ModuleOp) -> None:
        found = FloatAttr(old, f64)
        ops = [op for op in module.walk() if op.name == "ait.constant" and op.properties["value"] == found]
        assert ops
        for op in ops:
            op.properties["value"] = FloatAttr(new, f64)

    return change


STEP = 2.0**-11
"""The distance of neighbouring numbers of f16 at sqrt(1/2)."""


def test_a_rounded_constant_is_replaced_by_the_number_that_it_stands_for() -> None:
    """In one of its two uses: the other one stays as it is."""
    module = parse_text(context(), GELU)
    checker = SemanticsChecker(module)
    simplify(module)
    assert not checker.after("simplify", module, simplify)
    assert checker.checks and not checker.skipped


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (GELU.replace("0.70703125", str(0.70703125 + 2 * STEP)), number(0.70703125 + 2 * STEP, 0.70703125)),
        (GELU.replace("0.70703125", str(0.70703125 - 2 * STEP)), number(0.70703125 - 2 * STEP, 0.70703125)),
        (GELU, drop_a_cast),
    ],
    ids=["too large", "too small", "a dropped cast"],
)
def test_more_than_rounding_is_found_beside_a_replaced_constant(text: str, change: Callable[[ModuleOp], None]) -> None:
    def wrong(m: ModuleOp) -> None:
        change(m)
        simplify(m)

    module = parse_text(context(), text)
    checker = SemanticsChecker(module)
    wrong(module)
    assert checker.after("wrong", module, wrong)


WHOLE_GELU = """
ait.graph @g(%x: !ait.tensor<b x 9 x f16>) dims {b = 1 to 4} {
  %0 = ait.gelu %x : !ait.tensor<b x 9 x f16>
  ait.output "y" %0 : !ait.tensor<b x 9 x f16>
}
"""
WRITTEN_GELU = """
ait.graph @g(%x: !ait.tensor<b x 9 x f16>) dims {b = 1 to 4} {
  %half = ait.constant HALF : !ait.tensor<f16>
  %one = ait.constant 1.0 : !ait.tensor<f16>
  %r = ait.constant ROOT : !ait.tensor<f16>
  %0 = ait.mul %x, %r : !ait.tensor<b x 9 x f16>
  %1 = ait.erf %0 : !ait.tensor<b x 9 x f16>
  %2 = ait.add %1, %one : !ait.tensor<b x 9 x f16>
  %3 = ait.mul %x, %half : !ait.tensor<b x 9 x f16>
  %4 = ait.mul %3, %2 : !ait.tensor<b x 9 x f16>
  ait.output "y" %4 : !ait.tensor<b x 9 x f16>
}
"""


def written_out(root: float, half: float = 0.5) -> Callable[[ModuleOp], None]:
    """A pass that writes out a gelu, with constants of f16 that the module did not have."""

    def change(module: ModuleOp) -> None:
        text = WRITTEN_GELU.replace("ROOT", str(root)).replace("HALF", str(half))
        old, new = op_of(module, "ait.graph"), op_of(parse_text(context(), text), "ait.graph")
        new.detach()
        new.properties["dims"] = old.properties["dims"]
        old.detach()
        module.body.block.add_op(new)

    return change


def test_a_pass_that_only_adds_rounded_constants_is_compared_with_the_numbers_that_they_stand_for() -> None:
    module = parse_text(context(), WHOLE_GELU)
    checker = SemanticsChecker(module)
    written_out(0.70703125)(module)
    assert not checker.after("write-out", module, written_out(0.70703125))
    assert checker.checks and not checker.skipped


@pytest.mark.parametrize(("root", "half"), [(0.70703125 + STEP, 0.5), (0.70703125 - STEP, 0.5), (0.70703125, 0.25)])
def test_another_added_number_is_found(root: float, half: float) -> None:
    module = parse_text(context(), WHOLE_GELU)
    checker = SemanticsChecker(module)
    written_out(root, half)(module)
    assert checker.after("wrong", module, written_out(root, half))


@pytest.mark.parametrize(
    ("old", "new"), [(0.70703125, 0.70703125 + STEP), (0.70703125, -0.70703125), (0.5, 0.501), (0.5, -0.5), (1.0, 0.0)]
)
def test_another_number_is_found(old: float, new: float) -> None:
    module = parse_text(context(), GELU)
    checker = SemanticsChecker(module)
    number(old, new)(module)
    assert checker.after("wrong", module, number(old, new))


def test_each_pass_is_compared_with_the_one_before() -> None:
    module = parse_text(context(), TEXT)
    checker = SemanticsChecker(module)
    constant(0.25)(module)
    assert checker.after("first", module, constant(0.25))
    assert not checker.after("second", module, lambda m: None)
    assert {d.pass_name for d in checker.differences} == {"first"}


def test_small_dims_are_tried_on_a_widened_copy() -> None:
    """A pass that is wrong only where a dim is 0 or 1, which the declared range excludes."""
    text = """ait.graph @g(%x: !ait.tensor<s x f32>) dims {s = 2 to 9} {
      %0 = ait.softmax %x dim 0 : !ait.tensor<s x f32>
      %1 = ait.param "w" : !ait.tensor<f32>
      %2 = ait.mul %1, %0 : !ait.tensor<s x f32>
      ait.output "y" %2 : !ait.tensor<s x f32>
    }"""

    def wrong_at_one(m: ModuleOp) -> None:
        graph = op_of(m, "ait.graph")
        if "s = 0 to 9" in str(graph.properties["dims"]):
            use_input("ait.softmax")(m)

    module = parse_text(context(), text)
    checker = SemanticsChecker(module)
    found = checker.after("small", module, wrong_at_one)
    assert [d.point for d in found] == [Point((("s", 1),))]


def test_a_range_that_is_needed_keeps_dims_at_one() -> None:
    text = """ait.graph @g(%x: !ait.tensor<s x f32>) dims {s = 2 to 9} {
      %0 = ait.slice %x offsets [s - 1] : !ait.tensor<1 x f32>
      %1 = ait.neg %0 : !ait.tensor<1 x f32>
      ait.output "y" %1 : !ait.tensor<1 x f32>
    }"""

    def drop(m: ModuleOp) -> None:
        op = op_of(m, "ait.neg")
        op.results[0].replace_all_uses_with(op.operands[0])

    module = parse_text(context(), text)
    checker = SemanticsChecker(module)
    drop(module)
    assert Point((("s", 1),)) in [d.point for d in checker.after("drop", module, drop)]
    module = parse_text(context(), text.replace("s - 1", "s - 2"))
    checker = SemanticsChecker(module)
    assert "not valid" in checker.skipped[0]
    drop(module)
    assert checker.after("drop", module, drop)


def test_nan_and_infinities_are_tried() -> None:
    """x * 0 is 0 for all finite x only."""
    text = """ait.graph @g(%x: !ait.tensor<s x f32>) dims {s = 4 to 9} {
      %0 = ait.constant 0.0 : !ait.tensor<f32>
      %1 = ait.mul %x, %0 : !ait.tensor<s x f32>
      %2 = ait.constant 0.0 : !ait.tensor<s x f32>
      ait.output "y" %1 : !ait.tensor<s x f32>
    }"""

    def fold(m: ModuleOp) -> None:
        op = op_of(m, "ait.mul")
        assert op.next_op is not None
        op.results[0].replace_all_uses_with(op.next_op.results[0])

    module = parse_text(context(), text)
    checker = SemanticsChecker(module)
    fold(module)
    found = checker.after("fold", module, fold)
    assert found and all(d.point.special for d in found)
    assert "with NaN and infinities: output 'y': 1 of" in str(found[0])


def test_a_pass_that_fails_on_the_copy_is_noted() -> None:
    module = parse_text(context(), TEXT)
    checker = SemanticsChecker(module)

    def fail(m: ModuleOp) -> None:
        raise ValueError("not for this range")

    assert not checker.after("fails", module, fail)
    assert "pass 'fails' on: not for this range" in checker.skipped[0]


class Break(ModulePass):
    """Changes a constant."""

    name = "test-break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constant(0.75)(op)


class BreakRow(Pass):
    """The row of that pass."""

    def load(self) -> type[ModulePass]:
        return Break


def test_ait_opt_reports_and_exits_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PASSES, "test-break", BreakRow("test-break", __name__, "Break"))
    path = tmp_path / "g.mlir"
    path.write_text(TEXT)
    outcome = run_ait_opt([str(path), "-p", "test-break", "--check-semantics"])
    assert outcome.code == 1 and outcome.stdout == ""
    assert (
        "g.mlir:2:1: error: pass 'test-break' changes the meaning of @g at b = 1, s = 2: output 'y'" in outcome.stderr
    )
    outcome = run_ait_opt([str(path), "-p", "fuse-elementwise", "--check-semantics"])
    assert outcome.code == 0 and "no difference" in outcome.stderr and "nothing" not in outcome.stderr
    for passes in ("simplify", ""):
        outcome = run_ait_opt([str(path), "-p", passes, "--check-semantics"])
        assert outcome.code == 0 and "semantics: nothing was compared: no pass changed the module" in outcome.stderr


WRONG_PATTERN = """pdl.pattern @neg_of_neg : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %inner = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
  %v = pdl.result 0 of %inner
  %root = pdl.operation "ait.neg" (%v : !pdl.value) -> (%t : !pdl.type)
  pdl.rewrite %root {
    pdl.replace %root with %inner
  }
}
"""
TWO_GRAPHS = """ait.graph @other(%x: !ait.tensor<4 x f32>) {
  ait.output "y" %x : !ait.tensor<4 x f32>
}
ait.graph @g(%x: !ait.tensor<4 x f32>) {
  %0 = ait.neg %x : !ait.tensor<4 x f32>
  %1 = ait.neg %0 : !ait.tensor<4 x f32>
  %2 = ait.exp %1 : !ait.tensor<4 x f32>
  ait.output "y" %2 : !ait.tensor<4 x f32>
}
"""


@pytest.mark.parametrize("options", [[], ["--print-stats"], ["--explain"]], ids=" ".join)
def test_the_error_is_at_the_op_that_a_pattern_replaced(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "wrong.mlir").write_text(WRONG_PATTERN)
    path = tmp_path / "g.mlir"
    path.write_text(TWO_GRAPHS)
    passes = f'apply-patterns{{file="{tmp_path / "wrong.mlir"}"}}'
    outcome = run_ait_opt([str(path), "-p", passes, "--check-semantics", *options])
    errors = [line for line in outcome.stderr.splitlines() if ": error: " in line]
    assert outcome.code == 1 and errors
    for error in errors:
        assert error.startswith(f"{path}:6:3: error: pass 'apply-patterns' changes the meaning of @g"), error
        assert error.endswith("; pattern 'neg_of_neg' replaced this op"), error
    assert len(set(errors)) == len(errors)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.mlir")), ids=lambda p: p.name)
@pytest.mark.parametrize("target", tiers.params(["cpu", "cuda", "rocm"], ["cpu", "cuda"]))
def test_examples_keep_their_meaning(path: Path, target: str) -> None:
    outcome = run_ait_opt([str(path), "-p", passes_between("imported", "planned", target), "--check-semantics"])
    assert outcome.code == 0, outcome.stderr
    assert "no difference" in outcome.stderr
