"""What masks become means what they meant, for finite scores and rows that see something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.passes.pipelines import patterns_of
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.rewrites.apply import rewrite
from tests.rewrites.support import parse

FILE = Path(__file__).parents[2] / "lit_tests/rewrites/attention_masks.mlir"
DIMS = ({"b": 1, "s": 2, "l": 5}, {"b": 3, "s": 7, "l": 4}, {"b": 2, "s": 8, "l": 8})


def graphs(text: str) -> dict[str, GraphOp]:
    return {op.sym_name.data: op for op in parse(text).body.block.ops if isinstance(op, GraphOp)}


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("name", graphs(FILE.read_text()))
def test_meaning(name: str, dims: dict[str, int]) -> None:
    before = graphs(FILE.read_text())[name]
    module = parse(FILE.read_text())
    rewrite(module, patterns_of("fuse-masked-attention"))
    after = next(op for op in module.body.block.ops if isinstance(op, GraphOp) and op.sym_name.data == name)
    if name in ("chosen", "triangle"):
        assert "ait.softmax" not in [op.name for op in after.block.ops]
        assert [op.name for op in after.block.ops] != [op.name for op in before.block.ops]
    dims = {d.name: dims[d.name] for d in before.scope}
    rng = np.random.default_rng(0)
    given: dict[str, np.ndarray] = {}
    for label, value in before.inputs():
        shape = [d.evaluate(dims) for d in value.type.dims]  # pyright: ignore
        element = str(value.type.element_type)  # pyright: ignore
        given[label] = rng.standard_normal(shape) if element == "f32" else rng.integers(0, 9, shape)
        if element == "i1":
            given[label] = np.arange(given[label].size).reshape(shape) % 2 == 0  # every row sees something
    want, got = (evaluate_graph(graph, given, {}, dims) for graph in (before, after))
    assert want.keys() == got.keys()
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=1e-9, atol=1e-12)
