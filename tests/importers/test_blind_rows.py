"""Rows of attention that see no column: 0 in `scaled_dot_product_attention`, and in a written-out softmax what the
softmax gives: NaN for -inf, equal weights for the least number of a type."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from ait_mlir.importers.torch import from_torch  # noqa: E402
from tests import tiers  # noqa: E402
from tests.importers.blind import (  # noqa: E402
    GROUPS,
    NAMES,
    Encoder,
    Function,
    accuracy_of,
    inputs_of,
    of_encoder,
)

CLOSE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


ROWS = [(*name, dtype) for name in NAMES for dtype in CLOSE]
SAMPLED = [row for i, row in enumerate(ROWS) if i % len(CLOSE) == i // len(CLOSE) % len(CLOSE)]
"""Each mask in one type; the types in turn."""


@pytest.mark.parametrize(("group", "name", "dtype"), tiers.params(ROWS, SAMPLED), ids=str)
def test_rows_that_see_no_column(group: str, name: str, dtype: torch.dtype) -> None:
    model, inputs = Function(GROUPS[group][name]).eval(), inputs_of(dtype)
    ours, eager = ait_mlir.compile(model, inputs)(*inputs), model(*inputs)
    assert bool(eager.isnan().any()) == (group == "nans")
    torch.testing.assert_close(ours, eager, rtol=CLOSE[dtype], atol=CLOSE[dtype], equal_nan=True)
    result = accuracy_of(ours, model, inputs)
    assert result.passed or dtype == torch.float32, result  # so few numbers of f32 make no ratio of errors


def test_they_are_part_of_the_attention() -> None:
    """No op around it looks for these rows."""
    text = str(from_torch(Function(GROUPS["zeros"]["bool"]).eval(), inputs_of(torch.float32)).module)
    assert text.count("ait.attention") == 1 and "nan_rows" not in text and "ait.reduce" not in text


def test_padding_in_front_does_not_spread_through_the_layers() -> None:
    model, inputs = Encoder().eval(), of_encoder()
    want = model(*inputs)
    assert bool(want.isfinite().all())
    torch.testing.assert_close(ait_mlir.compile(model, tuple(inputs))(*inputs), want, rtol=1e-4, atol=1e-4)
