from __future__ import annotations

from pathlib import Path

from tests.kernels.harness import Library
from tests.kernels.unread import check_unread, sorts


def test_results_that_nobody_reads_are_not_written(tmp_path: Path) -> None:
    cases = sorts()
    library = Library(cases, tmp_path)
    for case in cases:
        check_unread(library, case)
