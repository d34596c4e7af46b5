"""`ait-opt --explain`: each pass with its patterns, their laws and its changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ait_mlir.tools.cli import main
from tests.lit.runner import run_ait_opt

T = "!ait.tensor<4 x f32>"
TEXT = f"""ait.graph @g(%x: {T}) {{
  %0 = ait.relu %x : {T}
  %1 = ait.relu %0 : {T}
  %2 = ait.neg %1 : {T}
  ait.output "y" %2 : {T}
}}
"""


def test_each_pass_says_what_it_changed_and_why() -> None:
    outcome = run_ait_opt(["-", "-p", "simplify,fuse-epilogue,cse", "--explain", "--print-stats"], TEXT)
    lines = [re.sub(r"\d+\.\d ms", "T ms", line) for line in outcome.stdout.splitlines()]
    assert lines[0] == "==== simplify: 1 rewrite, T ms" and "1 x idempotent_relu" in outcome.stderr
    (law,) = [line for line in lines if line.startswith("  idempotent")]
    assert re.fullmatch(r"  idempotent_relu x 1: relu\(relu\(x\)\) = relu\(x\) \(ait_mlir/rewrites/\S+\.py:\d+\)", law)
    assert [line.strip() for line in lines if re.match(r" +[-+] ", line)] == [
        f"-    %1 = ait.relu %0 : {T}  // idempotent_relu",
        f"-    %2 = ait.neg %1 : {T}",
        f"+    %2 = ait.neg %0 : {T}",
    ]
    assert lines[-2:] == ["==== fuse-epilogue: no change, T ms", "==== cse: no change, T ms"]


PATTERN = """// neg(neg(x)) = x
// for every x
pdl.pattern @twice : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %inner = pdl.operation "ait.relu" (%x : !pdl.value) -> (%t : !pdl.type)
  %v = pdl.result 0 of %inner
  %root = pdl.operation "ait.relu" (%v : !pdl.value) -> (%t : !pdl.type)
  pdl.rewrite %root {
    pdl.replace %root with %inner
  }
}
"""


def test_patterns_of_a_file_have_the_comment_above_them_as_law(tmp_path: Path) -> None:
    (tmp_path / "mine.mlir").write_text(PATTERN)
    options = ["-", "-p", f'apply-patterns{{file="{tmp_path}/mine.mlir"}}', "--explain"]
    assert f"  twice x 1: neg(neg(x)) = x for every x ({tmp_path}/mine.mlir:3)" in run_ait_opt(options, TEXT).stdout


def test_a_report_can_be_written_of_any_passes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = run_ait_opt(["-", "-p", "simplify,cse", "--report", str(page)], TEXT)
    assert outcome.code == 0 and "ait.neg" in outcome.stdout
    assert page.read_text().count('<section class="pass"') == 2 and "relu(relu(x)) = relu(x)" in page.read_text()
    outcome = run_ait_opt(["-", "-p", "simplify", "--report", str(tmp_path / "none" / "page.html")], TEXT)
    assert outcome.code == 1 and "none does not exist: make this folder first" in outcome.stderr


@pytest.mark.parametrize("report", ["a.mlir", "./a.mlir", "out.mlir", "link.html"])
def test_a_report_replaces_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.mlir", "out.mlir"):
        Path(name).write_text(TEXT)
    Path("link.html").symlink_to("a.mlir")
    outcome = run_ait_opt(["a.mlir", "-p", "simplify", "--report", report, "-o", "out.mlir"])
    assert outcome.code == 1 and "the page would replace " in outcome.stderr
    assert Path("a.mlir").read_text() == Path("out.mlir").read_text() == TEXT
    assert main(["compile", "a.mlir", "--to", "fused", "--report", report, "-o", "out.mlir"]) == 1
    assert Path("a.mlir").read_text() == Path("out.mlir").read_text() == TEXT


def test_without_passes_there_is_nothing_to_explain() -> None:
    assert run_ait_opt(["-", "--explain"], TEXT).stdout == "no pass ran; -p names passes\n"
