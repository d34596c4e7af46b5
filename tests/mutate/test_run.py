"""The command that removes constraints of patterns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutate import run

NAME = "join_bias_gemm"


def test_a_mutant_that_tests_notice_is_remembered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(run.mutants_of(NAME))
    assert run.main([NAME, "--jobs", "1"], tmp_path) == 0
    assert f"{count} mutants of 1 patterns, {count} to try" in capsys.readouterr().out
    assert run.main([NAME, "--jobs", "1"], tmp_path) == 0
    assert f"{count} mutants of 1 patterns, 0 to try" in capsys.readouterr().out


def test_a_mutant_that_no_test_notices_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "lit_tests_pass", lambda family, compiled: True)
    assert run.try_mutant(NAME, 0) == run.Tried(NAME, 0, survives=True)


def test_unknown_names_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["no-such-pass"], tmp_path) == 1
    assert "no pass or pattern no-such-pass; passes: simplify" in capsys.readouterr().err
