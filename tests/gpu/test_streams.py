"""Runs on several streams on the card: bitwise those on one, plainly, in graphs, and in graphs of the caller."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ait_mlir
from benchmarks.peers import inception

pytestmark = pytest.mark.gpu


def branches() -> tuple[nn.Module, list[torch.Tensor]]:
    module = nn.Sequential(inception.block_35(192, 32), inception.block_35(256, 64))
    return module, [torch.randn(1, 192, 35, 35)]


class Bags(nn.Module):
    """Bags of two ids from 26 tables, and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(100, 64, mode="sum") for _ in range(26))
        self.top = nn.Linear(26 * 64, 32)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.top(torch.cat([table(ids[:, 2 * i : 2 * i + 2]) for i, table in enumerate(self.tables)], 1))


def recommender() -> tuple[nn.Module, list[torch.Tensor]]:
    return Bags(), [torch.randint(0, 100, (4, 52))]


@pytest.mark.parametrize("graph_mode", [False, True], ids=["plain", "graph"])
@pytest.mark.parametrize("make", [branches, recommender])
def test_streams_compute_what_one_computes(make, graph_mode: bool) -> None:
    torch.manual_seed(0)
    module, given = make()
    module = module.eval().half()
    given = [x.half() if x.is_floating_point() else x for x in given]
    one, several = (
        ait_mlir.compile(module, tuple(given), target="cuda", measure=False, graph_mode=graph_mode, streams=n)
        for n in (0, 4)
    )
    if make is branches:
        assert "stream 1" in several.model.ir_text and "stream 1" not in one.model.ir_text
    inputs = [x.cuda() for x in given]
    expected = one(*inputs).clone()
    for _ in range(100):
        assert torch.equal(several(*inputs), expected)


def test_graphs_of_the_caller_and_runs_between() -> None:
    torch.manual_seed(0)
    module, given = branches()
    compiled = ait_mlir.compile(module.eval().half(), (given[0].half(),), target="cuda", measure=False, streams=4)
    x = given[0].half().cuda()
    expected = compiled(x).clone()
    graphs = []
    for _ in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = compiled(x)
            z = compiled(x)  # the streams of the first run are in the recording still
        graphs.append((graph, y, z))
        assert torch.equal(compiled(x), expected)
    for graph, y, z in graphs:
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, expected) and torch.equal(z, expected)


def test_a_profile_times_each_launch_on_one_stream() -> None:
    module, given = branches()
    compiled = ait_mlir.compile(module.eval().half(), (given[0].half(),), target="cuda", measure=False, streams=4)
    found = compiled.model.profile_with_tensors([given[0].half().cuda()], num_iters=3)
    assert any("stream 1" in row["launch"] for row in found.report()["launches"])


def test_plain_runs_of_many_short_launches_use_one_stream() -> None:
    """A recommender's launches take the host longer than the card; a profile of the framework sees where they ran."""
    module, given = recommender()
    given = [x.half() if x.is_floating_point() else x for x in given]
    compiled = ait_mlir.compile(module.eval().half(), tuple(given), target="cuda", measure=False, streams=4)
    assert "streams if recorded" in compiled.model.ir_text
    inputs = [x.cuda() for x in given]
    expected = compiled(*inputs).clone()
    torch.cuda.synchronize()

    def streams_of(run) -> int:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            run()
            torch.cuda.synchronize()
        kernels = [e for e in profile.profiler.kineto_results.events() if "CUDA" in str(e.device_type())]
        return len({e.device_resource_id() for e in kernels if not e.name().startswith("Mem")})

    assert streams_of(lambda: compiled(*inputs)) == 1
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = compiled(*inputs)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, expected)
