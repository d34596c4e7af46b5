"""Scatters on an emulated card: the bits of one place after the other, and places that indices do not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulator.corpus import KINDS
from tests.emulator.library import EmulatedLibrary, Kind
from tests.kernels.scatter import check_order, sums


@pytest.mark.parametrize("kind", KINDS)
def test_sums_have_the_bits_of_one_place_after_the_other(kind: Kind, tmp_path: Path) -> None:
    cases = sums()
    library = EmulatedLibrary([case for case, _, _ in cases], tmp_path, kind)
    check_order(library, cases, (1, 40, 300))
    check_order(library, [case for case in cases if case[2] < 64], (4096, 4100))
