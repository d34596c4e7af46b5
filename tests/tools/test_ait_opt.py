"""Options of ait-opt that mlir-opt has, too: expected errors, IR around passes, times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ait_mlir.passes.patterns import PatternPass
from tests.lit.runner import run_ait_opt

T = "!ait.tensor<4 x f32>"
GOOD = f"""ait.graph @g(%x: {T}) {{
  %0 = ait.relu %x : {T}
  %y = ait.relu %0 : {T}
  ait.output "y" %y : {T}
}}
"""


def with_lines(*lines: str) -> str:
    """A graph whose fourth line, without other lines, is wrong: the dim of its softmax."""
    return "\n".join([f"ait.graph @g(%x: {T}) {{", *lines, f'  ait.output "y" %0 : {T}', "}", ""])


WRONG = f"  %0 = ait.softmax %x dim 7 : {T}"


@pytest.mark.parametrize(
    "lines",
    [
        ["  // expected-error@below {{dim 7}}", WRONG],
        ["  // expected-error @below {{dim 7}}", WRONG],
        ["  // expected-error@+1 {{dim 7}}", WRONG],
        [WRONG, "  // expected-error@above {{dim 7}}"],
        [WRONG, "  // expected-error@-1 {{dim 7}}"],
        [f"{WRONG} // expected-error {{{{dim 7}}}}"],
        [WRONG, "  // expected-error@unknown {{dim 7}}"],
        ["  // expected-error-re@below {{dim {{[0-9]+}}}}", WRONG],
    ],
)
def test_an_expected_error_is_found(lines: list[str]) -> None:
    outcome = run_ait_opt(["-", "--verify-diagnostics"], with_lines(*lines))
    assert (outcome.code, outcome.stderr) == (0, "")


def test_stacked_comments_mean_the_next_line_of_code() -> None:
    two = [f"  %0 = ait.softmax %x dim 7 : {T}", f"  %1 = ait.softmax %x dim 8 : {T}"]
    comments = ["  // expected-error@above {{dim 7}}", "  // expected-error@below {{dim 8}}"]
    outcome = run_ait_opt(["-", "--verify-diagnostics"], with_lines(two[0], *comments, two[1]))
    assert (outcome.code, outcome.stderr) == (0, "")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([WRONG], r"<stdin>:2:\d+: error: unexpected error: .*dim 7"),
        (["  // expected-error@+2 {{dim 7}}", WRONG], r'<stdin>:2:6: error: expected error "dim 7" was not .* line 4'),
        (["  // expected-error@+2 {{dim 7}}", WRONG], r"<stdin>:3:\d+: error: unexpected error"),
        (
            ["  // expected-error@below {{dim 6}}", WRONG],
            r'<stdin>:2:6: error: expected error "dim 6" was not produced',
        ),
        (["  // expected-warning@below {{dim 7}}", WRONG], r"<stdin>:2:6: error: expected warning"),
        (["  // expected-error @below {dim 7}", WRONG], r"<stdin>:2:6: error: this expectation cannot be read"),
        (["  // expected-eror @below {{dim 7}}", WRONG], r"<stdin>:2:6: error: this expectation cannot be read"),
        (["  // expected-error-re@below {{dim {{[}}}}", WRONG], r"<stdin>:2:6: error: .* is no regular expression"),
        ([f"  %0 = ait.relu %x : {T} // expected-error {{{{dim}}}}"], r"<stdin>:2:\d+: error: expected error"),
    ],
)
def test_differences_have_places(lines: list[str], said: str) -> None:
    outcome = run_ait_opt(["-", "--verify-diagnostics"], with_lines(*lines))
    assert outcome.code == 1 and re.search(said, outcome.stderr), outcome.stderr


def test_lines_of_a_part_are_those_of_the_file() -> None:
    text = GOOD + "\n// -----\n\n" + with_lines("  // expected-error@+2 {{dim 7}}", WRONG)
    outcome = run_ait_opt(["-", "--verify-diagnostics", "--split-input-file"], text)
    assert outcome.code == 1 and [line.split(" ")[0] for line in outcome.stderr.splitlines() if "error: " in line] == [
        "<stdin>:10:6:",
        "<stdin>:11:3:",
    ]


PASSES = ["-", "-p", "simplify,fuse-epilogue,cse"]


@pytest.mark.parametrize(
    ("options", "dumps"),
    [
        (["--mlir-print-ir-after=simplify"], ["After SimplifyPass (simplify)"]),
        (
            ["--mlir-print-ir-after=cse,simplify", "--mlir-print-ir-before=cse"],
            [
                "After SimplifyPass (simplify)",
                "Before CommonSubexpressionElimination (cse)",
                "After CommonSubexpressionElimination (cse)",
            ],
        ),
        (["--mlir-print-ir-after-all", "--mlir-print-ir-after-change"], ["After SimplifyPass (simplify)"]),
        (["--mlir-print-ir-after-failure"], []),
    ],
)
def test_ir_is_printed_around_passes(options: list[str], dumps: list[str]) -> None:
    outcome = run_ait_opt([*PASSES, *options], GOOD)
    assert outcome.code == 0
    assert re.findall(r"^// -----// IR Dump (.*) //----- //$", outcome.stderr, re.M) == dumps
    assert outcome.stdout == run_ait_opt(PASSES, GOOD).stdout
    assert outcome.stderr.count(outcome.stdout) == len(dumps)


def test_all_passes_are_printed_before_and_after() -> None:
    outcome = run_ait_opt([*PASSES, "--mlir-print-ir-before-all", "--mlir-print-ir-after-all"], GOOD)
    assert re.findall(r"IR Dump (Before|After)", outcome.stderr) == ["Before", "After"] * 3


def test_ir_is_printed_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: PatternPass, ctx: object, module: object) -> bool:
        next(op for op in module.walk() if op.name == "ait.relu").detach()  # type: ignore[attr-defined]
        return True

    options = [*PASSES, "--mlir-print-ir-after-failure"]
    monkeypatch.setattr(PatternPass, "changes", breaks)
    outcome = run_ait_opt(options, GOOD)
    assert outcome.code == 1 and outcome.stdout == ""
    dump, _, error = outcome.stderr.partition("\n\n")
    assert dump.startswith("// -----// IR Dump After SimplifyPass Failed (simplify) //----- //\n")
    assert '"ait.graph"' in dump and "pass 'simplify'" in error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mlir-print-ir-after=simplfy"], "unknown pass 'simplfy'; did you mean 'simplify'"),
        (["--mlir-print-ir-before=cse,"], "unknown pass ''"),
        (["--mlir-print-ir-after-change"], "add --mlir-print-ir-after-all"),
        (["--explain", "--generate-checks"], "give one of them"),
    ],
)
def test_options_that_do_nothing_are_errors(options: list[str], said: str) -> None:
    outcome = run_ait_opt([*PASSES, *options], GOOD)
    assert outcome.code == 1 and outcome.stdout == "" and said in outcome.stderr, outcome.stderr


def test_timing_has_a_row_for_each_step() -> None:
    outcome = run_ait_opt([*PASSES, "--mlir-timing"], GOOD)
    rows = re.findall(r"^ +\d+\.\d{4} \( *\d+\.\d%\)  (.*)$", outcome.stderr, re.M)
    assert rows == ["Parser", "simplify", "fuse-epilogue", "cse", "Rest", "Total"]


def test_names_of_mlir_opt_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(GOOD)
    generic = run_ait_opt([str(tmp_path / "a.mlir"), "--mlir-print-op-generic", "--mlir-print-debuginfo"]).stdout
    assert generic == run_ait_opt([str(tmp_path / "a.mlir"), "--print-op-generic", "--print-debuginfo"]).stdout
    assert '"ait.relu"' in generic and "loc(" in generic
    counts = [
        re.findall(r"\d+ x \w+", run_ait_opt([*PASSES, flag], GOOD).stderr)
        for flag in ("--print-stats", "--mlir-pass-statistics")
    ]
    assert counts[0] == counts[1] != []


def test_a_hyphen_is_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run_ait_opt(["-", "-o", "-"], GOOD)
    assert outcome.code == 0 and "ait.graph @g" in outcome.stdout and not list(tmp_path.iterdir())
