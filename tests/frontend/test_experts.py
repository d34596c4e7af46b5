"""A mixture of experts in the builder, by the meaning of its ops, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, IntVar, Tensor, build_module, ops
from ait_mlir.reference.graph import evaluate_graph
from tests.kernels.harness import parse_graph

BATCH = IntVar([0, 8], name="batch")
SHAPES = {"router": (6, 8), "gate_up": (6, 20, 8), "down": (6, 8, 10)}


def mixture(top_k, **options):
    x = Tensor(shape=[BATCH, 3, 8], name="x", dtype="float32", is_input=True)
    weights = [Tensor(shape=list(shape), name=name, dtype="float32") for name, shape in SHAPES.items()]
    return ops.mixture_of_experts(top_k, **options)(x, *weights)


@pytest.mark.parametrize(("top_k", "normalize"), [(2, True), (1, False), (6, True)])
def test_a_mixture_agrees_with_pytorch(top_k, normalize):
    graph = parse_graph(str(build_module([mixture(top_k, normalize=normalize).mark_as_output("y")])))
    generator = torch.Generator().manual_seed(0)
    params = {n: torch.randn(*s, generator=generator, dtype=torch.float64) for n, s in SHAPES.items()}
    for batch in (0, 1, 5):
        x = torch.randn(batch, 3, 8, generator=generator, dtype=torch.float64)
        weights, chosen = F.softmax(x @ params["router"].T, -1).topk(top_k)
        weights = weights / weights.sum(-1, keepdim=True) if normalize else weights
        gate, up = torch.einsum("bsh,eih->bsei", x, params["gate_up"]).chunk(2, -1)
        each = torch.einsum("bsei,ehi->bseh", F.silu(gate) * up, params["down"])
        picked = each.gather(2, chosen[..., None].expand(-1, -1, -1, 8))
        want = (picked * weights[..., None]).sum(2)
        arrays = {n: p.numpy() for n, p in params.items()}
        got = evaluate_graph(graph, {"x": x.numpy()}, arrays, {"batch": batch})["y"]
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-12)


def test_more_experts_than_there_are():
    with pytest.raises(BuildError, match="chooses 7 of 6 experts, expected 1 to their number"):
        mixture(7)
