"""`torch.compile(backend="ait")`: a changed weight is read in the next call, however it was changed."""

from __future__ import annotations

import copy
import logging

import pytest
import torch
from torch import nn

from ait_mlir.importers.torch.dynamo import FallbackWarning, register


@pytest.fixture(autouse=True)
def backend(caplog):
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    register()
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    """Products that share an input, a convolution with a batch norm, a table of places, a scale in the code."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.table = nn.Embedding(16, 8)
        self.register_buffer("places", torch.arange(4))
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x)) + self.table(self.places)
        return (self.q(x) * self.scale + self.k(x)).relu()


def in_numpy(weight: torch.Tensor) -> None:
    weight.detach().numpy()[...] += 1


def swapped(weight: torch.Tensor) -> None:
    with torch.no_grad():
        torch.utils.swap_tensors(weight, nn.Parameter(torch.randn_like(weight)))


def set_storage(weight: torch.Tensor) -> None:
    weight.data.set_(torch.randn_like(weight).untyped_storage(), 0, weight.shape)


CHANGES = {
    ".data.copy_": lambda m: [p.data.copy_(torch.randn_like(p)) for p in m.parameters()],
    ".data =": lambda m: [setattr(p, "data", torch.randn_like(p)) for p in m.parameters()],
    ".data +=": lambda m: [p.data.add_(1) for p in m.parameters()],
    "lerp_, a moving average": lambda m: [p.data.lerp_(torch.ones_like(p), 0.5) for p in m.parameters()],
    "addmm_, a merged adapter": lambda m: m.q.weight.data.addmm_(torch.randn(8, 2), torch.randn(2, 8)),
    "vector_to_parameters": lambda m: nn.utils.vector_to_parameters(
        torch.randn(1 + sum(p.numel() for p in m.parameters()))[1:], m.parameters()
    ),
    "a view in NumPy": lambda m: [in_numpy(p) for p in m.parameters()],
    "another storage": lambda m: [set_storage(p) for p in m.parameters()],
    "swap_tensors": lambda m: [swapped(p) for p in m.parameters()],
    "a transposed tensor": lambda m: setattr(m.k.weight, "data", torch.randn(8, 8).t()),
    "a part of a larger one": lambda m: setattr(m.k.weight, "data", torch.randn(8, 9)[:, 1:]),
    "load_state_dict": lambda m: m.load_state_dict(Net().state_dict()),
    "buffers": lambda m: [m.norm.running_var.data.add_(1), m.scale.data.fill_(5.0)],
    "a buffer that is replaced": lambda m: setattr(m, "scale", torch.tensor(7.0)),
}


def assert_as_in_eager(fast: torch.nn.Module, net: Net, x: torch.Tensor, change: str) -> None:
    """Our largest error against float64 is at most twice that of eager, or the last bits of the largest number:
    the changed weights are large, and terms that cancel leave errors far above a fixed tolerance.
    """
    exact = copy.deepcopy(net).double()(x.double())
    ours, eager = ((y - exact).abs().max() for y in (fast(x), net(x)))
    assert ours <= max(2 * eager, 4 * torch.finfo(x.dtype).eps * exact.abs().max()), change


@pytest.fixture(scope="module")
def net() -> Net:
    return Net().eval()


def test_a_weight_is_read_where_it_lies(net, caplog, recwarn):
    """One compiled graph for all changes, and no call in PyTorch."""
    fast = torch.compile(net, backend="ait")
    x = torch.randn(2, 4, 8)
    with torch.no_grad():
        fast(x)
        for name, change in CHANGES.items():
            change(net)
            assert_as_in_eager(fast, net, x, name)
    assert not [w for w in recwarn if w.category is FallbackWarning]
    assert "is compiled" in caplog.records[0].message


def test_whole_numbers_in_the_code_are_compared(net):
    fast = torch.compile(net, backend="ait")
    x = torch.randn(2, 4, 8)
    with torch.no_grad():
        fast(x)
        net.places.numpy()[...] = [3, 1, 2, 0]
        with pytest.warns(FallbackWarning, match="whose numbers are part of the code, has changed"):
            torch.testing.assert_close(fast(x), net(x))
        net.places.numpy()[...] = [0, 1, 2, 3]
        torch.testing.assert_close(fast(x), net(x))


def test_frozen_weights_are_copied_again_if_pytorch_counts_a_write_or_moves_them(net):
    fast = torch.compile(net, backend="ait", options={"freeze": True})
    x = torch.randn(2, 4, 8)
    with torch.no_grad():
        fast(x)
        for change in (
            lambda: [p.add_(1) for p in net.parameters()],
            lambda: [setattr(p, "data", torch.randn_like(p)) for p in net.parameters()],
            lambda: setattr(net.q, "weight", nn.Parameter(torch.randn(8, 8))),
        ):
            change()
            torch.testing.assert_close(fast(x), net(x))


def test_freeze_is_true_or_false():
    with torch.no_grad(), pytest.raises(Exception, match="'freeze' of the backend 'ait' is 3, expected True or False"):
        torch.compile(nn.Linear(2, 2), backend="ait", options={"freeze": 3})(torch.ones(1, 2))


def test_a_weight_that_is_a_result_is_the_weight():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(4, 8))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x @ self.w, self.w.detach()[0]

    model = Tied()
    with torch.no_grad():
        _, row = torch.compile(model, backend="ait")(torch.randn(2, 4))
    row += 1
    assert torch.equal(model.w[0], row) and not row.requires_grad


def test_a_parameter_that_a_graph_writes_is_written():
    model, twin = nn.Linear(4, 4).eval(), nn.Linear(4, 4).eval()
    twin.load_state_dict(model.state_dict())

    def step(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        module.weight.mul_(0.5)
        return module(x)

    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(torch.compile(step, backend="ait")(model, x), step(twin, x))
    torch.testing.assert_close(model.weight, twin.weight)
