"""Grouped products against PyTorch, which traces them in bf16 only and leaves rows behind the last group undefined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

from ait_mlir.errors import AitError
from ait_mlir.importers.torch import from_torch
from ait_mlir.reference.graph import evaluate_graph


def floats(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16)


class Grouped(torch.nn.Module):
    def forward(self, a, b, ends=None):
        return F.grouped_mm(a, b, offs=ends)


def check(shapes, given, inputs):
    imported = from_torch(Grouped().eval(), given, dynamic_shapes=shapes)
    names = [item.name for item in imported.inputs.tensors]
    arrays = {n: (v.float() if v.is_floating_point() else v).numpy() for n, v in zip(names, inputs, strict=True)}
    dims = {d.name: inputs[0].shape[0] for d in imported.graph.scope.dims}
    (got,) = evaluate_graph(imported.graph, arrays, imported.constants, dims).values()
    want = Grouped()(*inputs).float().numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=1e-2)


def test_groups_of_rows():
    torch.manual_seed(0)
    b = floats(3, 16, 8)

    def inputs(ends):
        return floats(ends[-1], 16), b, torch.tensor(ends, dtype=torch.int32)

    shapes = {"a": {0: Dim("rows", min=2, max=64)}, "b": None, "ends": None}
    for ends in ([2, 2, 9], [0, 5, 20]):
        check(shapes, inputs([2, 5, 8]), inputs(ends))


def test_groups_of_columns():
    given = floats(3, 4, 16), floats(16, 24), torch.tensor([2, 2, 24], dtype=torch.int32)
    check(None, given, given)


def test_matrices_one_by_one():
    given = floats(3, 4, 16), floats(3, 16, 8)
    check(None, given, given)


def test_groups_of_what_is_summed_are_refused():
    given = floats(4, 16), floats(16, 8), torch.tensor([2, 16], dtype=torch.int32)
    with pytest.raises(AitError, match="two matrices give a product for each group"):
        from_torch(Grouped().eval(), given)


class Mixture(torch.nn.Module):
    """Two of four experts for each token, without a loop over experts."""

    def __init__(self):
        super().__init__()
        self.router = torch.nn.Linear(16, 4, bias=False)
        self.up = torch.nn.Parameter(torch.randn(4, 16, 32) / 4)
        self.down = torch.nn.Parameter(torch.randn(4, 32, 16) / 6)

    def forward(self, x):
        weights, experts = self.router(x).softmax(-1).topk(2, dim=-1)
        order = experts.flatten().argsort(stable=True)
        counts = F.one_hot(experts.flatten(), 4).sum(0)
        ends = counts.cumsum(0).to(torch.int32)
        rows = x[order // 2]
        made = F.grouped_mm(F.silu(F.grouped_mm(rows, self.up, offs=ends)), self.down, offs=ends)
        return torch.zeros_like(x).index_add(0, order // 2, made * weights.flatten()[order][:, None])


def test_a_mixture_of_experts():
    torch.manual_seed(0)
    model = Mixture().bfloat16().eval()
    imported = from_torch(model, (floats(7, 16),), dynamic_shapes=({0: Dim("tokens", min=1, max=32)},))
    assert str(imported.module).count("ait.ragged_gemm") == 2
    for tokens in (1, 9):
        x = floats(tokens, 16)
        (name,) = [item.name for item in imported.inputs.tensors]
        (dim,) = imported.graph.scope.dims
        constants = {
            n: np.asarray(c.float() if isinstance(c, torch.Tensor) else c) for n, c in imported.constants.items()
        }
        (got,) = evaluate_graph(imported.graph, {name: x.float().numpy()}, constants, {dim.name: tokens}).values()
        with torch.no_grad():
            np.testing.assert_allclose(got, model(x).float().numpy(), rtol=2**-5, atol=3e-2)
