"""Selecting by a mask: a size that depends on values is a dim that the run binds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402


class Select(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        y = torch.masked_select(x, x[:, :1] > 0.5)
        return y * 2, x[x[:, 0] > 0].softmax(-1)


def test_masks_select_what_pytorch_selects() -> None:
    shapes = ({0: torch.export.Dim("n", max=64)},)
    compiled = ait_mlir.compile(Select().eval(), (torch.randn(5, 3),), target="cpu", dynamic_shapes=shapes)
    assert "count = 0 to 3*n bound, count_1 = 0 to n bound" in compiled.ir()
    for seed, rows in enumerate((5, 2, 33)):
        torch.manual_seed(seed)
        x = torch.randn(rows, 3)
        for found, want in zip(compiled(x), Select()(x), strict=True):
            np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-5)
