"""Evaluate a built model with the reference, in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.frontend import Tensor, build_module
from ait_mlir.reference import evaluate_graph


def graph_of(outputs: Tensor | Sequence[Tensor]) -> GraphOp:
    module = build_module(outputs)
    module.verify()
    graph = module.body.block.first_op
    assert isinstance(graph, GraphOp)
    return graph


def evaluate(
    outputs: Tensor | Sequence[Tensor],
    inputs: dict[str, np.ndarray],
    params: dict[str, np.ndarray] | None = None,
    **dims: int,
) -> list[np.ndarray]:
    graph = graph_of(outputs)
    results = evaluate_graph(graph, inputs, params or {}, dims)
    return [results[output.output_name.data] for output in graph.outputs()]
