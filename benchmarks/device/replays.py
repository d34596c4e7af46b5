"""Launches in CUDA graphs, and how long a replay takes."""

from __future__ import annotations

from collections.abc import Callable

import torch


def graph_of(launch: Callable[[int], object], count: int) -> torch.cuda.CUDAGraph:
    """A graph of `launch(0)` to `launch(count - 1)`; each runs once before, for what is set up then."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for i in range(count):
            launch(i)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for i in range(count):
            launch(i)
    return graph


def seconds(graph: torch.cuda.CUDAGraph) -> float:
    """Of one replay."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000
