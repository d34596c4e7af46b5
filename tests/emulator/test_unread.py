"""Results that nobody reads, on an emulated card."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulator.corpus import KINDS
from tests.emulator.library import EmulatedLibrary, Kind
from tests.kernels.unread import check_unread, selections, sorts


@pytest.mark.parametrize("kind", KINDS)
def test_results_that_nobody_reads_are_not_written(kind: Kind, tmp_path: Path) -> None:
    cases = [*sorts(), *selections()]
    library = EmulatedLibrary(cases, tmp_path, kind)
    for case in cases:
        check_unread(library, case)
