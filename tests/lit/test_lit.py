"""Every text test in lit_tests/, and the round trip of everything valid in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lit.round_trip import check_round_trip, valid_chunks
from tests.lit.runner import check_file

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "lit_tests").rglob("*.mlir") if "Inputs" not in path.parts)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_run_lines(path: Path) -> None:
    check_file(path)


@pytest.mark.parametrize("path", [*FILES, *sorted((ROOT / "examples").glob("*.mlir"))], ids=name_of)
def test_round_trip(path: Path) -> None:
    for text in valid_chunks(path):
        check_round_trip(text)
