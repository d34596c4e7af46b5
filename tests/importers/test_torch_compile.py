"""`torch.compile(model, backend="ait")`: compiled where that can be, as before where it cannot."""

from __future__ import annotations

import inspect
import logging

import pytest
import torch
from torch import nn

from ait_mlir.importers.torch.dynamo import register


@pytest.fixture(autouse=True)
def backend():
    register()
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    return caplog


class Broken(nn.Module):
    """Two graphs with a decision between them, the first of which is ours and the second is not."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = self.first(x).relu()
        if float(y[0, 0]) > 1e9:
            y = y * 2
        return torch.sort(self.second(y))[0]


def test_sizes_that_change_are_compiled_once_more(log):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        for batch in (2, 3, 5, 9):
            x = torch.randn(batch, 8)
            torch.testing.assert_close(fast(x), model(x))
    assert [r.message for r in log.records] == ["a graph of 3 operations is compiled"] * 2


def test_what_is_not_ours_runs_in_pytorch(log):
    model = Broken().eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        x = torch.randn(2, 8)
        torch.testing.assert_close(fast(x), model(x))
    told = [r.message for r in log.records]
    assert sum("is compiled" in t for t in told) >= 1
    (refused,) = [t for t in told if "runs in PyTorch" in t]
    line = inspect.getsourcelines(Broken.forward)[1] + 4
    place = f"{__file__}:{line} in forward: return torch.sort(self.second(y))[0]"
    assert f"aten.sort.default, used once, first at {place}" in refused


def test_weights_that_are_written_to_are_taken_again():
    model = nn.Linear(8, 4).eval()
    fast = torch.compile(model, backend="ait")
    with torch.no_grad():
        x = torch.randn(2, 8)
        before = fast(x)
        model.weight.mul_(3)
        torch.testing.assert_close(fast(x), model(x))
        assert not torch.equal(fast(x), before)


def test_training_stays_with_pytorch(log):
    model = nn.Linear(8, 4)
    fast = torch.compile(model, backend="ait")
    fast(torch.randn(2, 8)).sum().backward()
    assert model.weight.grad is not None
    assert "it needs gradients" in log.records[0].message


def test_an_unknown_option_is_refused():
    fast = torch.compile(nn.Linear(8, 4).eval(), backend="ait", options={"speed": 3})
    with torch.no_grad(), pytest.raises(Exception, match="unknown option 'speed'"):
        fast(torch.randn(2, 8))
