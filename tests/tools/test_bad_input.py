"""Whatever text it gets, ait-opt says FILE:LINE:COL: error: what is wrong, exits with 1, and does so at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import at_most
from tests.lit.runner import run_ait_opt
from tests.tools.bad_inputs import BAD_INPUTS, RELU, graph

ROOT = Path(__file__).parents[2]
HEAD = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): error: (?P<message>.+)$", re.MULTILINE)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_refused_with_a_place(name: str, tmp_path: Path) -> None:
    text, pattern = BAD_INPUTS[name]
    path = write(tmp_path / "bad.mlir", text)
    with at_most(100_000 + 250 * path.stat().st_size):
        outcome = run_ait_opt([str(path)])
    assert outcome.code == 1
    assert outcome.stdout == ""
    first, *rest = outcome.stderr.splitlines()
    head = HEAD.match(first)
    assert head is not None and head["file"] == str(path), first[:300]
    assert re.search(f"bad.mlir:{pattern}", first), first[:300]
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    if lines[int(head["line"]) - 1].strip():
        assert len(rest) >= 2 and rest[1].strip() == "^", outcome.stderr[:500]
        assert len(rest[1]) <= len(rest[0]) + 1 <= 200
    assert "Traceback" not in outcome.stderr


def test_every_error_is_reported() -> None:
    text = graph("  %0 = ait.relu %x : !ait.tensor<f16>", "  %1 = ait.softmax %x dim 7 : " + RELU)
    outcome = run_ait_opt(["-"], text)
    assert [m["line"] for m in HEAD.finditer(outcome.stderr)] == ["2", "3"]


@pytest.mark.parametrize(
    ("passes", "pattern"),
    [
        ("no-such-pass", r"no-such-pass"),
        ("simplify{depth=3}", r"depth"),
        ("simplify{", r"error"),
        ("simplify,,simplify", r"error"),
        ("apply-patterns", r"file"),
        ('apply-patterns{file="/no/such/file.mlir"}', r"/no/such/file.mlir"),
        ('select{target="abacus"}', r"abacus"),
        ("x" * 10_000, r"error"),
    ],
)
def test_bad_passes(passes: str, pattern: str) -> None:
    outcome = run_ait_opt(["-", "-p", passes], graph())
    assert outcome.code == 1
    assert "error: " in outcome.stderr and re.search(pattern, outcome.stderr), outcome.stderr[:500]
    assert "Traceback" not in outcome.stderr


def test_bad_options(tmp_path: Path) -> None:
    write(tmp_path / "file", "")
    for arguments, pattern in (
        (["--no-such-option"], "--no-such-option"),
        (["a.mlir", "b.mlir"], "b.mlir"),
        ([str(tmp_path / "missing.mlir")], "cannot read .*missing.mlir: No such file"),
        ([str(tmp_path)], "cannot read .*: Is a directory"),
        (["-", "-o", "/proc/where.mlir"], "cannot write .*where.mlir: No such file"),
        (["-", "-o", str(tmp_path / "file" / "where.mlir")], "where.mlir cannot be written: .*file is no folder"),
        (["-", "-o", str(tmp_path)], "is a folder"),
        (["-", "-o", str(tmp_path / "no" / "where.mlir")], "where.mlir cannot be written: .*no does not exist"),
    ):
        outcome = run_ait_opt(arguments, graph())
        assert outcome.code == 1, arguments
        assert re.search(f"^ait-opt: error: .*{pattern}", outcome.stderr), outcome.stderr


@pytest.mark.parametrize("name", ["deep regions", "digits of a dim", "not UTF-8", "unterminated string", "unknown op"])
def test_as_a_process(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.mlir", BAD_INPUTS[name][0])
    done = subprocess.run(
        [sys.executable, "-m", "ait_mlir.tools.ait_opt", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert HEAD.match(done.stderr.splitlines()[0])
    assert "Traceback" not in done.stderr
