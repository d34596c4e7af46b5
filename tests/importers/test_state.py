"""Buffers and inputs that a model changes: donated inputs, written in place where that is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from ait_mlir.dialects.ait_rt.program import LaunchOp  # noqa: E402
from ait_mlir.driver import run_to_phase  # noqa: E402
from ait_mlir.importers.torch import from_torch  # noqa: E402
from ait_mlir.importers.torch.dynamo import register  # noqa: E402


class Cached(torch.nn.Module):
    """A step of a decoder: a row into the cache at a position, a running mean, a count, a column of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("k", torch.zeros(2, 8, 4))
        self.register_buffer("v", torch.zeros(2, 8, 4), persistent=False)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("count", torch.zeros(3, dtype=torch.int64))

    def forward(self, x: Any, at: Any, y: Any) -> Any:
        self.k.index_copy_(1, at, x)
        self.v[:, at] = x * 2
        self.v[:, 6:7] = x
        self.v[:, -1] = 1
        self.mean.mul_(0.5).add_(x.mean((0, 1)))
        self.count += 1
        y[:, 1:2] = x[:, 0, :1]
        return (self.k @ self.v.transpose(1, 2)).sum(-1), self.mean * 2


EXAMPLE = (torch.randn(2, 1, 4), torch.tensor([3]), torch.randn(2, 4))


def test_state_follows_pytorch_over_several_calls() -> None:
    module = Cached().eval()
    compiled = ait_mlir.compile(Cached().eval(), EXAMPLE, target="cpu")
    assert sorted(compiled.state) == ["count", "k", "mean", "v"]
    for i in range(4):
        torch.manual_seed(i)
        x, y = torch.randn(2, 1, 4), torch.randn(2, 4)
        turned = y.t().contiguous().t()  # is written in place although it is not contiguous
        at = torch.tensor([2 * i])
        expected = module(x, at, y)
        for found, want in zip(compiled(x, at, turned), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(turned.numpy(), y.numpy())
        for name, value in compiled.state.items():
            np.testing.assert_allclose(value.numpy(), getattr(module, name).numpy(), rtol=1e-6)


def test_rows_and_means_are_written_in_place() -> None:
    """Nothing is copied: each launch is one that computes."""
    imported = from_torch(Cached().eval(), EXAMPLE)
    assert imported.graph.donated() == ["y", "k", "v", "mean", "count"]
    module = run_to_phase(imported.module.clone(), "planned")
    launches = [op.kernel_name for op in module.walk() if isinstance(op, LaunchOp)]
    assert not [name for name in launches if "copy" in name], launches


def test_a_graph_of_torch_compile_changes_the_buffers_of_the_module() -> None:
    register()
    module, twin = Cached().eval(), Cached().eval()
    compiled = torch.compile(module, backend="ait")
    with torch.no_grad():
        for at in (3, 5):
            x, y = torch.randn(2, 1, 4), torch.randn(2, 4)
            for found, want in zip(compiled(x, torch.tensor([at]), y), twin(x, torch.tensor([at]), y), strict=True):
                torch.testing.assert_close(found, want)
    for name, value in twin.named_buffers():
        torch.testing.assert_close(module.get_buffer(name), value)
