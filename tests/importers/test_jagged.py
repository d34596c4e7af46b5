"""Bags of rows of PyTorch: what is imported, against eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.errors import UnsupportedOps
from ait_mlir.reference.graph import evaluate_graph

BAGS, IDS, BATCH = Dim("bags", min=3, max=40), Dim("ids", max=80), Dim("batch", max=8)


class Bags(nn.Module):
    """Bags by offsets, by offsets with the end, with weights, and of equal lengths."""

    def __init__(self) -> None:
        super().__init__()
        options = {"mode": "mean", "padding_idx": 2}, {"mode": "sum", "include_last_offset": True}, {"mode": "max"}
        self.mean, self.total, self.most = (nn.EmbeddingBag(20, 6, dtype=torch.float64, **o) for o in options)

    def forward(self, rows, ids, offsets, weights):
        return self.mean(rows), self.mean(ids, offsets), self.total(ids, offsets, weights), self.most(ids, offsets)


def inputs(batch: int, ids: int, bags: int) -> tuple[torch.Tensor, ...]:
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), torch.randint(0, ids + 1, (bags - 1,)).sort().values])
    starts[-1] = ids  # eager in float64 takes no other end of the last bag, which is not what it documents
    rows, flat = torch.randint(0, 20, (batch, 3)), torch.randint(0, 20, (ids,))
    return rows, flat, starts, torch.rand(ids, dtype=torch.float64)


def test_bags_mean_what_pytorch_does() -> None:
    torch.manual_seed(0)
    model = Bags().eval()
    shapes = ({0: BATCH}, {0: IDS}, {0: BAGS}, {0: IDS})
    imported = from_torch(model, inputs(2, 9, 4), dynamic_shapes=shapes)
    imported.module.verify()
    assert str(imported.module).count("= ait.embedding_bag") == 4
    for sizes in ((2, 9, 4), (1, 80, 40), (8, 0, 3)):
        given = inputs(*sizes)
        with torch.no_grad():
            want = model(*given)
        arrays = {item.name: v.numpy() for item, v in zip(imported.inputs.tensors, given, strict=True)}
        dims = dict(zip(("batch", "ids", "bags"), sizes, strict=True))
        got = evaluate_graph(imported.graph, arrays, imported.constants, dims)
        for (_, name), value in zip(imported.outputs, want, strict=True):
            np.testing.assert_allclose(got[name], value.numpy(), rtol=1e-12, atol=1e-12)


def test_results_for_training_are_refused() -> None:
    class Sizes(nn.Module):
        def forward(self, table, ids, offsets):
            return torch.ops.aten._embedding_bag(table, ids, offsets)[2]

    given = torch.randn(5, 4), torch.tensor([1, 2, 3]), torch.tensor([0, 2])
    with pytest.raises(UnsupportedOps, match="a result that is for training only is used"):
        from_torch(Sizes().eval(), given)
