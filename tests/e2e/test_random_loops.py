"""Random graphs whose ops are loops wherever they may be, compiled for the CPU and run, against the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.passes.form_loops import FormLoopsPass
from tests import tiers
from tests.e2e.support import compile_graph, joined
from tests.e2e.test_random_graphs import wide_graph
from tests.generator import random_graph

LIBRARIES = {
    "narrow": [random_graph(seed) for seed in range(30_000, 30_030)],
    "wide": [wide_graph(seed) for seed in range(40_000, 40_020)],
    "more": [random_graph(seed) for seed in range(50_000, 50_100)],
}


def as_loops(text: str) -> str:
    """The text of a graph after `form-loops` without a target."""
    module = parse_text(context(), text)
    FormLoopsPass().apply(context(), module)
    return str(next(iter(module.ops)))


@pytest.mark.parametrize("name", tiers.params(LIBRARIES, ["wide"]))
def test_random_loops(name: str, tmp_path: Path) -> None:
    graphs = LIBRARIES[name]
    text = as_loops(joined(graphs))
    assert text.count("ait.loops") > len(graphs)
    compiled = compile_graph(text, tmp_path)
    scope = compiled.graph.scope
    low, high = scope.minimum_env(), scope.maximum_env()
    for seed, dims in enumerate([low, high, {dim: max(1, value) for dim, value in low.items()}]):
        problems = compiled.problems(dims, seed, special=seed % 2 == 1)
        texts = [graphs[int(p.removeprefix("output 'g").split("_", 1)[0])] for p in problems[:1]]
        assert not problems, "\n".join([*problems, *texts])
