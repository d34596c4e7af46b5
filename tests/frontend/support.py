"""Evaluate a built model with the reference, in float64, and compare it with PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.frontend import IntVar, Tensor, build_module
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


BATCH, SEQ = 3, 5


def tensor(name: str, *shape, dtype: str = "float64") -> Tensor:
    dims = {"batch": IntVar([1, 8], name="batch"), "seq": IntVar([1, 16], name="seq")}
    return Tensor(shape=[dims.get(d, d) for d in shape], dtype=dtype, name=name, is_input=True)


def data(t: Tensor, positive: bool = False) -> np.ndarray:
    shape = [d.evaluate({"batch": BATCH, "seq": SEQ}) for d in t.type.dims]
    values = np.random.default_rng(len(t.name or "")).standard_normal(shape)
    return np.abs(values) + 0.1 if positive else values


def check(build, torch_function, *inputs: Tensor, positive: bool = False) -> None:
    arrays = [data(t, positive) for t in inputs]
    used = {t.name: a for t, a in zip(inputs, arrays, strict=True)}
    got = evaluate(build(*inputs), used, batch=BATCH, seq=SEQ)
    want = torch_function(*(torch.from_numpy(a) for a in arrays))
    for g, w in zip(got, want if isinstance(want, tuple | list) else [want], strict=True):
        np.testing.assert_allclose(g, w.numpy(), rtol=1e-9, atol=1e-12)
