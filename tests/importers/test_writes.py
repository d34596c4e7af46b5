"""In-place operations on parts of computed tensors: the same results, and no second trace where it is not needed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ait_mlir.importers.torch import decomposition
from tests.importers.function import Function
from tests.importers.meaning import B, check_meaning


def parts_and_views(x: Any) -> Any:
    y = x * 2
    v = y[0]
    y[1] = v + 1
    v.add_(3)
    z = y.sum()
    y[:, 1:3] = 0.5
    return y, v, z, y.reshape(-1)


def rows_of_a_transposed(x: Any) -> Any:
    y = (x * 2).transpose(0, 1)
    y[1] = 0
    y[:, 0].mul_(2.5)
    return y, y.t()[0]


def another_type(x: Any) -> Any:
    y = torch.zeros(3, 4, dtype=torch.float32)
    y[1] = x[0]
    y[..., 2] += 1
    return y


def one_after_the_other(x: Any) -> Any:
    y = x * 1
    y.add_(1).mul_(2)
    s = y[1:3]
    s += x[0]
    t = s[0]
    t.zero_()
    return y, s, t


def seen_through_an_earlier_view(x: Any) -> Any:
    y = x * 1
    wide = y.expand(2, 3, 4)
    y[0] = 7
    y.unsqueeze(0)[0, 1:] += 1
    return wide + 0, wide.permute(2, 0, 1)[0]


def forward_substitution(x: Any) -> Any:
    a = x[:, :3] @ x[:, :3].transpose(-1, -2)
    for j in range(1, a.shape[-1]):
        row = a[..., j, :j].clone()
        below = a[..., :j, :j].clone()
        a[..., j, :j] = row + (row.unsqueeze(-1) * below).sum(-2)
    return a


def with_a_copy_that_may_be_a_view(x: Any) -> Any:
    y = x * 2
    flat = y.reshape(-1)
    y[0] = 1
    return flat + 0, y


def pieces(x: Any) -> Any:
    y = x * 1
    a, b = y.chunk(2, 1)
    b.fill_(2)
    return y, a + b


def an_input(x: Any) -> Any:
    y = x.clone()
    x[0] = 1
    return x + y


TOGETHER = [parts_and_views, rows_of_a_transposed, another_type, one_after_the_other, seen_through_an_earlier_view]
TRACED = [with_a_copy_that_may_be_a_view, pieces]


def not_again(*_: Any) -> Any:
    raise AssertionError("the program was traced again")


@pytest.mark.parametrize("function", TOGETHER, ids=lambda f: f.__name__)
def test_writes_are_rewritten_without_another_trace(function, monkeypatch) -> None:
    monkeypatch.setattr(decomposition, "_decomposed", not_again)
    check_meaning(Function(function).eval(), (torch.randn(3, 4, dtype=torch.float64),), (None,))


def test_an_unrolled_recurrence_is_not_traced_again(monkeypatch) -> None:
    monkeypatch.setattr(decomposition, "_decomposed", not_again)
    check_meaning(Function(forward_substitution).eval(), (torch.randn(2, 5, 4, dtype=torch.float64),), ({0: B},))


@pytest.mark.parametrize("function", TRACED, ids=lambda f: f.__name__)
def test_other_writes_are_traced_again(function) -> None:
    check_meaning(Function(function).eval(), (torch.randn(3, 4, dtype=torch.float64),), (None,))


def test_a_write_to_an_input_stays_one() -> None:
    given = torch.randn(3, 4)
    imported = decomposition.simpler(torch.export.export(Function(an_input).eval(), (given,), strict=False))
    assert imported.graph_signature.user_inputs_to_mutate
