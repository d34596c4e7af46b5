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


class Choose(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        i = (x * 2).long()
        rows, columns = torch.where(x > 0.3)
        found = torch.unique_consecutive(i, return_inverse=True, return_counts=True)
        ordered, inverse, counts = torch.unique(i, return_inverse=True, return_counts=True)
        return (x > 0.3).nonzero(), rows + columns, *found, ordered * 2, inverse, counts, torch.unique(i)


def test_what_is_found_by_value() -> None:
    shapes = ({0: torch.export.Dim("n", max=64)},)
    compiled = ait_mlir.compile(Choose().eval(), (torch.randn(5, 3),), target="cpu", dynamic_shapes=shapes)
    for seed, rows in enumerate((5, 1, 33)):
        torch.manual_seed(seed)
        x = torch.randn(rows, 3)
        for found, want in zip(compiled(x), Choose()(x), strict=True):
            assert found.shape == want.shape
            np.testing.assert_array_equal(found.numpy(), want.numpy())
