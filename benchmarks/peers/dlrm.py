"""A recommender in plain PyTorch (arXiv:1906.00091): embeddings, their products with each other, two MLPs."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

TABLES, ROWS, WIDTH, DENSE = 26, 10_000, 128, 13


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    """Dense features [batch, 13] and one id for each of 26 tables, [batch, 26], to a score [batch, 1]."""

    def __init__(self, tables: int = TABLES, rows: int = ROWS, width: int = WIDTH, dense: int = DENSE):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = mlp(dense, 512, 256, width)
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(mlp(width + pairs, 1024, 1024, 512, 256), nn.Linear(256, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1), persistent=False)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        looked_up = [table(ids[:, i : i + 1]) for i, table in enumerate(self.tables)]
        features = torch.stack([x, *looked_up], 1)
        products = features @ features.transpose(1, 2)
        return torch.sigmoid(self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1)))


def inputs(batch: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(batch)
    dense = torch.randn(batch, DENSE, generator=generator).to(dtype)
    return [dense, torch.randint(0, ROWS, (batch, TABLES), generator=generator)]
