"""Networks over bags and graphs, in plain PyTorch: a recommendation model and a graph convolution, against eager."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import ait_mlir

TABLES, WIDTH = 26, 8


class DLRM(nn.Module):
    """Bags of 26 sparse features beside dense ones; pairs of features interact by their products (arXiv:1906.00091)."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, WIDTH), nn.ReLU())
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(50 + i % 2, WIDTH, mode=("sum", "mean")[i % 2], include_last_offset=True)
            for i in range(TABLES)
        )
        lower = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
        self.register_buffer("rows", lower[0])
        self.register_buffer("columns", lower[1])
        self.top = nn.Sequential(nn.Linear(WIDTH + lower.shape[1], 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, ids, offsets):
        x = self.bottom(dense)
        bags = [table(i, o) for table, i, o in zip(self.tables, ids, offsets, strict=True)]
        features = torch.stack([x, *bags], 1)
        pairs = (features @ features.transpose(1, 2))[:, self.rows, self.columns]
        return torch.sigmoid(self.top(torch.cat([x, pairs], 1)))


@pytest.mark.full
def test_a_recommendation_model_agrees_with_eager() -> None:
    torch.manual_seed(0)
    model = DLRM().eval()

    def inputs(batch: int, count: int) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
        ids = [torch.randint(0, 50, (count,)) for _ in range(TABLES)]
        inner = [torch.randint(0, count + 1, (batch - 1,)).sort().values for _ in range(TABLES)]
        ends = torch.tensor([0]), torch.tensor([count])
        return torch.randn(batch, 13), ids, [torch.cat([ends[0], o, ends[1]]) for o in inner]

    batch, count = Dim("batch", max=16), Dim("ids", max=64)
    shapes = {0: batch}, [{0: count}] * TABLES, [{0: batch + 1}] * TABLES
    compiled = ait_mlir.compile(model, inputs(5, 9), dynamic_shapes=shapes)
    for sizes in ((5, 9), (1, 1), (16, 64)):
        given = inputs(*sizes)
        with torch.no_grad():
            torch.testing.assert_close(compiled(*given), model(*given))


class GraphConvolution(nn.Module):
    """Sums over the edges of a graph, scaled by the degrees of both ends (arXiv:1609.02907)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(7, 16), nn.Linear(16, 3)

    def forward(self, x, edges):
        source, target = edges
        degree = torch.ones(x.shape[0]).scatter_add(0, target, torch.ones(edges.shape[1]))
        scale = degree.rsqrt()
        weights = (scale[source] * scale[target])[:, None]
        for layer in (self.first, self.second):
            h = layer(x)
            messages = h[source] * weights
            x = (h / degree[:, None]).scatter_add(0, target[:, None].expand_as(messages), messages)
            x = x if layer is self.second else torch.relu(x)
        return torch.log_softmax(x, 1)


def test_a_graph_convolution_agrees_with_eager() -> None:
    torch.manual_seed(0)
    model = GraphConvolution().eval()
    nodes, edges = Dim("nodes", min=2, max=60), Dim("edges", min=1, max=300)

    def inputs(n: int, e: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(n, 7), torch.randint(0, n, (2, e))

    compiled = ait_mlir.compile(model, inputs(5, 9), dynamic_shapes=({0: nodes}, {1: edges}))
    for sizes in ((5, 9), (2, 1), (60, 300)):
        given = inputs(*sizes)
        with torch.no_grad():
            torch.testing.assert_close(compiled(*given), model(*given))
