"""Every text test in lit_tests/, and the round trip of everything valid in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.lit.round_trip import check_round_trip, text_of, valid_chunks
from tests.lit.runner import check_file

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "lit_tests").rglob("*.mlir") if "Inputs" not in path.parts)

ONE = """
ait.graph @g(%x: !ait.tensor<4 x f32>) {
  %y = ait.relu %x : !ait.tensor<4 x f32>
  ait.output "y" %y : !ait.tensor<4 x f32>
}
"""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_run_lines(path: Path) -> None:
    check_file(path)


@pytest.mark.parametrize("path", [*FILES, *sorted((ROOT / "examples").glob("*.mlir"))], ids=name_of)
def test_round_trip(path: Path) -> None:
    for text in valid_chunks(path):
        check_round_trip(text, path.name)


@pytest.mark.parametrize(
    ("form", "change", "said"),
    [
        (False, ("ait.relu %x :", "ait.relu %x"), "the pretty form is printed as text that does not parse:\n<text>:"),
        (
            True,
            ("ait.relu", "ait.neg"),
            "once its generic form is parsed, its pretty form is another one:\n--- printed",
        ),
    ],
)
def test_a_text_that_does_not_come_back_shows_the_change(
    form: bool, change: tuple[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(module: ModuleOp, generic: bool) -> str:
        text = text_of(module, generic)
        return text.replace(*change) if generic == form else text

    monkeypatch.setattr("tests.lit.round_trip.text_of", wrong)
    with pytest.raises(pytest.fail.Exception) as failed:
        check_round_trip(ONE, "a.mlir")
    assert str(failed.value).startswith(f"a.mlir: {said}")
