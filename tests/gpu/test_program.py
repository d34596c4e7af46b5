"""State and dims that a run binds, on the card: in place, in graphs and on several streams, against PyTorch."""

from __future__ import annotations

import pytest
import torch

import ait_mlir
from tests.importers.test_bound_dims import Select
from tests.importers.test_state import Cached

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("graph_mode", [False, True])
def test_state_follows_pytorch(graph_mode: bool) -> None:
    example = (torch.randn(2, 1, 4).cuda(), torch.tensor([3]).cuda(), torch.randn(2, 4).cuda())
    module = Cached().eval().cuda()
    compiled = ait_mlir.compile(Cached().eval().cuda(), example, target="cuda", graph_mode=graph_mode)
    x, at, y = (torch.empty_like(t) for t in example)  # one address, so that the later runs replay a graph
    for i in range(6):
        x.normal_()
        at.fill_(i)
        y.zero_()
        expected_y = y.clone()
        expected = module(x, at, expected_y)
        found = compiled(x, at, y)
        torch.cuda.synchronize()
        for ours, want in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, want, rtol=1e-4, atol=1e-4)
        assert torch.equal(y, expected_y)
        for name, value in compiled.state.items():
            torch.testing.assert_close(value, getattr(module, name))
        del found, ours, expected, want, expected_y  # the next results are then where these were
    if graph_mode:
        assert compiled.model.graph_stats()["hits"] > 0


def test_a_place_outside_is_left_out() -> None:
    compiled = ait_mlir.compile(
        Cached().eval().cuda(),
        (torch.randn(2, 1, 4).cuda(), torch.tensor([3]).cuda(), torch.randn(2, 4).cuda()),
        target="cuda",
    )
    compiled(torch.ones(2, 1, 4).cuda(), torch.tensor([8]).cuda(), torch.zeros(2, 4).cuda())
    torch.cuda.synchronize()
    assert not compiled.state["k"].any()


def test_runs_on_two_streams_that_share_state_are_one_after_the_other() -> None:
    class Count(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(1 << 22))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return x * 2

    compiled = ait_mlir.compile(Count().eval().cuda(), (torch.ones(1 << 22).cuda(),), target="cuda", num_runtimes=2)
    ones, streams = torch.ones(1 << 22).cuda(), [torch.cuda.Stream(), torch.cuda.Stream()]
    torch.cuda.synchronize()
    for i in range(100):
        with torch.cuda.stream(streams[i % 2]):
            compiled(ones)
    torch.cuda.synchronize()
    assert (compiled.state["total"] == 100).all()


@pytest.mark.parametrize("rows", [1, 5, 60_000])
def test_masks_select_what_pytorch_selects(rows: int) -> None:
    shapes = ({0: torch.export.Dim("n", max=1 << 17)},)
    compiled = ait_mlir.compile(Select().eval(), (torch.randn(5, 3).cuda(),), target="cuda", dynamic_shapes=shapes)
    x = torch.randn(rows, 3).cuda()
    for ours, want in zip(compiled(x), Select()(x), strict=True):
        torch.testing.assert_close(ours, want)
