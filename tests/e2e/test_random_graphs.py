"""Random graphs, compiled for the CPU and run at several dims, against the reference by the rounding rules."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from ait_mlir.dims import Expr, const
from tests import tiers
from tests.e2e.support import compile_graph, joined
from tests.generator import SPECIFIED, Generator, random_graph

POINTS = 3
"""Random dims, beside the smallest, the largest, and 1 where the range has it."""


class Wide(Generator):
    """Makes graphs of tensors that are wider than a vector and no multiple of one."""

    def size(self) -> Expr:
        return const(self.rng.choice((1, 2, 3, 7, 16, 17, 31, 33, 64, 70)))


def wide_graph(seed: int) -> str:
    """The text of a random graph whose dim `s` goes up to 40."""
    rng = random.Random(seed)
    text = Wide(rng, due=[SPECIFIED[seed % len(SPECIFIED)]]).graph(f"random_{seed}", rng.choice((3, 6, 10, 15)))
    return re.sub(r"s = (\d) to \d", r"s = \1 to 40", text)


AS_SHIPPED = {"wide"}
"""What is always compiled with all optimizations: loops that are vectorized, with rests."""
LIBRARIES = {
    "narrow": [random_graph(seed) for seed in range(10_000, 10_030)],
    "narrow, more": [random_graph(seed) for seed in range(10_030, 10_060)],
    "wide": [wide_graph(seed) for seed in range(20_000, 20_020)],
}


@pytest.mark.parametrize("name", tiers.params(LIBRARIES, ["narrow"]))
def test_random_graphs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in AS_SHIPPED:
        tiers.as_shipped(monkeypatch)
    graphs = LIBRARIES[name]
    compiled = compile_graph(joined(graphs), tmp_path)
    scope = compiled.graph.scope
    rng = random.Random(name)
    low, high = scope.minimum_env(), scope.maximum_env()
    points = [low, high, {dim: max(1, value) for dim, value in low.items()}]
    points += [{d.name: rng.randint(d.lo, d.hi) for d in scope.dims} for _ in range(POINTS)]
    for seed, dims in enumerate(points):
        problems = compiled.problems(dims, seed, special=seed % 2 == 1)
        texts = [graphs[int(p.removeprefix("output 'g").split("_", 1)[0])] for p in problems[:1]]
        assert not problems, "\n".join([*problems, *texts])
    outputs = len(compiled.graph.outputs())
    print(f"{len(graphs)} graphs, {outputs} outputs, each at {len(points)} dims")
    assert outputs > len(graphs)
