"""Every row of the table of differences in docs/importing.md says what PyTorch and ait_mlir compute."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from tests.importers.blind import Function  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "importing.md"
NAMES: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "nan": math.nan, "inf": math.inf}


def rows() -> list[list[str]]:
    part = PAGE.read_text(encoding="utf-8").partition("## Differences from PyTorch")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


def outcome(run: Any, *inputs: Any) -> str:
    try:
        return str(run(*inputs).tolist())
    except Exception:  # of PyTorch or of a run
        return "an error"


@pytest.mark.parametrize(("call", "inputs", "theirs", "ours"), rows())
def test_a_row_says_what_both_compute(call: str, inputs: str, theirs: str, ours: str) -> None:
    given: dict[str, Any] = {}
    exec(inputs, NAMES, given)
    names = list(given)
    function = eval(f"lambda {', '.join(names)}: {call}", NAMES)
    model, arguments = Function(function).eval(), tuple(given.values())
    assert theirs in ("undefined", outcome(model, *arguments))
    assert outcome(ait_mlir.compile(model, arguments), *arguments) == ours


def test_there_are_rows() -> None:
    assert len(rows()) >= 9


def test_padded_rows_of_an_encoder_are_those_of_its_path_with_gradients() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    encoder, x = torch.nn.TransformerEncoder(layer, 1).eval(), torch.randn(2, 4, 8)
    padded = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1]], dtype=torch.bool)
    with torch.no_grad():
        fast = encoder(x, src_key_padding_mask=padded)
    with torch.enable_grad():
        other = encoder(x, src_key_padding_mask=padded).detach()
    found = ait_mlir.compile(encoder, (x,), {"src_key_padding_mask": padded})(x, src_key_padding_mask=padded)
    torch.testing.assert_close(found, other, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[~padded], fast[~padded], rtol=1e-4, atol=1e-5)
    assert not fast[padded].any() and found[padded].any()
