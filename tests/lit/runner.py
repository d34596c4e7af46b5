"""Runs the text tests of the package."""

from __future__ import annotations

from pathlib import Path

from ait_mlir.tools.run_lines import RunLine, failure, run_ait_opt, run_lines

__all__ = ["check_file", "lines_of", "run_ait_opt"]


def lines_of(path: Path) -> list[RunLine]:
    """The RUN lines of a file."""
    return list(run_lines(path.read_text(encoding="utf-8", errors="surrogateescape"), path))


def check_file(path: Path) -> None:
    """Run all RUN lines of a file; raise AssertionError with the output of the pipe that fails."""
    lines = lines_of(path)
    assert lines, f"{path} has no RUN line"
    failed = failure(lines)
    assert failed is None, f"{path}: {failed}"
