"""Results that nobody reads, on a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Library
from tests.kernels.unread import check_unread, selections, sorts

pytestmark = pytest.mark.gpu


def test_results_that_nobody_reads_are_not_written(tmp_path: Path) -> None:
    cases = [*sorts(), *selections()]
    library = Library(cases, tmp_path, Target("cuda", default_arch("cuda")))
    for case in cases:
        check_unread(library, case)
