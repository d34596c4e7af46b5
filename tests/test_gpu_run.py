"""`python -m tests.gpu.run`: a process for each file and family of the tests that need a CUDA device."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.gpu import run

LOG = """
........                                                                 [100%]
8 passed, 2 skipped, 1 warning in 12.31s
========= ERROR SUMMARY: 0 errors
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (LOG, "8 passed, 2 skipped, 1 warning in 12.31s; ERROR SUMMARY: 0 errors"),
        ("FAILED tests/gpu/test_a.py::test_b\n1 failed, 3 passed in 2.00s\n", "1 failed, 3 passed in 2.00s"),
        ("========= 3 passed in 2.00s =========\n========= RACECHECK SUMMARY: 1 hazard displayed\n",
         "3 passed in 2.00s; RACECHECK SUMMARY: 1 hazard displayed"),
        ("Segmentation fault\n", "no outcome"),
    ],
)  # fmt: skip
def test_the_summary_of_a_log(log: str, line: str) -> None:
    assert run.summary(log) == line


def test_nothing_begins_after_the_end(tmp_path: Path) -> None:
    outcome = run.Runs(tmp_path, None, time.monotonic() - 1).run(("tests/gpu/test_a.py", ""), ["tests/gpu/test_a.py"])
    assert not outcome.passed and outcome.line == "not begun" and not list(tmp_path.glob("*.log"))


def test_a_file_without_such_tests_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.files(run.ROOT / "docs") == []
    with pytest.raises(SystemExit):
        run.main(["--sample", "none"])
    assert "is no sample" in capsys.readouterr().err


@pytest.mark.full
def test_each_family_is_a_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run.main(["tests/gpu/test_masked.py", "--logs", str(tmp_path), "--jobs", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(("passed tests/gpu/test_masked.py: ", "FAILED tests/gpu/test_masked.py: "))
    assert lines[-1].startswith("1 files and families, ") and code in (0, 1)
    assert (tmp_path / "test_masked.tests").read_text().startswith("tests/gpu/test_masked.py::")
