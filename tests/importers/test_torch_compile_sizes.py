"""`torch.compile(backend="ait")`: sizes and integers that change, whose relations PyTorch's guards check."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ait_mlir.importers.torch.dynamo import FallbackWarning, register


@pytest.fixture(autouse=True)
def backend():
    register()
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield
    torch._dynamo.reset()


def rows(n):
    return torch.randn(2, n, 8)


def in_fours(x):
    if x.shape[1] % 4:
        x = F.pad(x, (0, 0, 0, -x.shape[1] % 4))
    return x.reshape(x.shape[0], -1, 4, 8).mean(2)


def written_at(x, cache, place):
    cache[:, place : place + x.shape[1]] = x * 2
    return cache[:, : place + x.shape[1]].sum(1)


CALLS = {
    "a multiple": (in_fours, [(rows(n),) for n in (12, 16, 20)]),
    "reflected to a multiple": (
        lambda x: F.pad(x, (0, -x.shape[-1] % 4), mode="reflect")[..., : x.shape[-1]] * 2,
        [(torch.randn(1, 2, n),) for n in (9, 5, 8)],
    ),
    "rows of a table": (
        lambda x, table: x * table[: x.shape[1]], [(rows(n), torch.randn(m, 8)) for n, m in ((5, 9), (9, 9))],
    ),
    "a part of the columns": (lambda x, n: x[:, :n] @ x[:, :n].mT, [(rows(20), n) for n in (4, 7, 9)]),
    "a part counted from the end": (lambda x, n: x[:, n:].sum(1), [(rows(9), n) for n in (-3, -5)]),
    "a number of heads": (lambda x, h: x.unflatten(-1, (h, -1)).softmax(-1), [(rows(3), h) for h in (2, 4)]),
    "a place and a length": (written_at, [(rows(2), torch.zeros(2, 16, 8), place) for place in (4, 7, 14)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_no_call_falls_back(name):
    function, calls = CALLS[name]
    fast = torch.compile(function, backend="ait", dynamic=True)
    for args in calls:
        copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        torch.testing.assert_close(fast(*args), function(*copies))
        torch.testing.assert_close(list(args), copies)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer, self.score = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, words):
        return self.score(self.layer(self.words(words))[0].mean(1))


def test_recurrent_layers_are_compiled_if_pytorch_traces_them(caplog):
    """Else PyTorch leaves the whole function out, without a call of the backend."""
    caplog.set_level("INFO", logger="ait_mlir.torch_compile")
    model = Classifier().eval()
    fast = torch.compile(model, backend="ait", dynamic=True)
    words = torch.randint(20, (2, 5))
    torch.testing.assert_close(fast(words), model(words))
    assert not any(r.name == "ait_mlir.torch_compile" for r in caplog.records)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(allow_rnn=True):
        for length in (5, 9):
            words = torch.randint(20, (2, length))
            torch.testing.assert_close(fast(words), model(words))
    (told,) = (r.message for r in caplog.records if r.name == "ait_mlir.torch_compile")
    assert told.endswith("is compiled")


def test_a_part_that_is_computed_again_in_training_is_compiled():
    layer = nn.Linear(8, 8).eval()

    def function(x):
        return torch.utils.checkpoint.checkpoint(lambda y: layer(y).relu() + 1, x, use_reentrant=False)

    x = torch.randn(3, 8)
    torch.testing.assert_close(torch.compile(function, backend="ait")(x), function(x))
