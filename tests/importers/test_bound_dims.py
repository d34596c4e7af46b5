"""Selecting by a mask: a size that depends on values is a dim that the run binds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ait_mlir  # noqa: E402
from ait_mlir.errors import RunError  # noqa: E402
from ait_mlir.importers.torch import from_torch  # noqa: E402
from ait_mlir.reference.core import EvaluationError  # noqa: E402
from ait_mlir.reference.graph import evaluate_graph  # noqa: E402
from tests.importers.blind import Function  # noqa: E402


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


class Rows(torch.nn.Module):
    """Distinct slices along each dim."""

    def forward(self, x: Any) -> Any:
        i = (x * 1.5).long()
        both = {"return_inverse": True, "return_counts": True}
        rows, runs = torch.unique(i, dim=0, **both), torch.unique_consecutive(i > 0, dim=-1, **both)
        volume = torch.stack([i, i + 1, i], 1)
        return *rows, *runs, rows[0].sum(0), torch.unique(volume, dim=-2), torch.unique(x[:, :1].round(), dim=0)


def test_slices_are_distinct_along_a_dim() -> None:
    """With a number of rows, and of columns by which they are sorted, that a run chooses."""
    shapes = ({0: torch.export.Dim("n", max=64), 1: torch.export.Dim("m", min=2, max=8)},)
    compiled = ait_mlir.compile(Rows().eval(), (torch.randn(5, 3),), target="cpu", dynamic_shapes=shapes)
    assert "bound" in compiled.ir()
    for seed, size in enumerate(((5, 3), (1, 2), (33, 2), (40, 7))):
        torch.manual_seed(seed)
        x = torch.randn(size)
        for found, want in zip(compiled(x), Rows()(x), strict=True):
            assert found.shape == want.shape
            np.testing.assert_array_equal(found.numpy(), want.numpy())


class Put(torch.nn.Module):
    """Writes at masks of leading and of inner dims; reads at masks of inner dims, beside other indices, and several
    tensors at one mask.
    """

    def forward(self, x: Any) -> Any:
        rows, inner, elements = x[..., 0] > 0, x[0, :, 0] > 0, x > 0
        put, within = x.clone(), x.clone()
        put[rows] = x[rows] * 2 + 1
        within[:, inner] = x[:, inner] + 1
        added = x.index_put((elements,), x[elements], accumulate=True)
        scattered = x.masked_scatter(rows[..., None], x), x.masked_scatter(elements, x[elements] * 3)
        best = x[0][inner], x[0, :, 0][inner], inner.nonzero()
        return put, within, added, *scattered, *best, x[0][:, x[0, 0] > 0], x[0][inner, torch.tensor([3])]


def test_masks_are_written_as_pytorch_writes_them() -> None:
    shapes = ({0: torch.export.Dim("n", min=1, max=6)},)
    compiled = ait_mlir.compile(Put().eval(), (torch.randn(3, 5, 8),), target="cpu", dynamic_shapes=shapes)
    torch.manual_seed(0)
    for x in (torch.randn(3, 5, 8), torch.randn(1, 5, 8), -torch.rand(2, 5, 8), torch.rand(2, 5, 8)):
        for found, want in zip(compiled(x), Put()(x), strict=True):
            np.testing.assert_array_equal(found.numpy(), want.numpy())


class Fill(torch.nn.Module):
    def forward(self, x: Any, values: Any) -> Any:
        return x.masked_scatter(x > 0, values)


def test_too_few_values_for_a_mask_are_an_error() -> None:
    compiled = ait_mlir.compile(Fill().eval(), (torch.ones(4), torch.ones(2)), target="cpu")
    np.testing.assert_array_equal(compiled(torch.tensor([-1.0, 2, -1, 3]), torch.tensor([7.0, 8])), [-1, 7, -1, 8])
    with pytest.raises(RunError, match="the mask is true in more places than there are values"):
        compiled(torch.ones(4), torch.ones(2))


class Routed(torch.nn.Module):
    """The model computes a mask again for each use."""

    def forward(self, x: Any, is_text: Any) -> Any:
        y = x.clone()
        y[~is_text] += x[~is_text] * 2
        y[is_text] *= x[is_text].cumsum(0)
        return y, x[is_text] + x[is_text.nonzero()[:, 0]]


def test_one_mask_selects_one_number_of_elements() -> None:
    x = torch.arange(8.0).view(4, 2)
    compiled = ait_mlir.compile(Routed().eval(), (x, torch.tensor([True, False, False, True])), target="cpu")
    for mask in ([True, False, True, True], [False] * 4, [True] * 4):
        for found, want in zip(compiled(x, torch.tensor(mask)), Routed()(x, torch.tensor(mask)), strict=True):
            torch.testing.assert_close(found, want)


class Extremes(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        y = x[x > 9]
        return y.amax(), *y.max(0), y.argmin(), y.median(0).values, y.mode(0).values, y.topk(2).values, y[0], y[-2]


def test_extremes_of_what_a_mask_selects() -> None:
    """As in PyTorch; of too few elements, an error of the run."""
    compiled = ait_mlir.compile(Extremes().eval(), (torch.zeros(4),), target="cpu")
    for values in ([10.0, 3, 11], [12.0, 12, 10, 13], [-torch.inf, torch.inf, 11]):
        x = torch.zeros(4)
        x[: len(values)] = torch.tensor(values)
        for found, want in zip(compiled(x), Extremes()(x), strict=True):
            np.testing.assert_array_equal(found, want)
    with pytest.raises(RunError, match="nothing has no largest, smallest or middle element"):
        compiled(torch.zeros(4))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.nonzero()[0], "there is no element at index 0"),
        (lambda x: x[x > 0].cumsum(0)[-1], "there is no element at index -1"),
        (lambda x: x[x > 0].topk(2).values, "there are fewer than 2 elements"),
        (lambda x: x[x[:, 0] > 0].amax(0), "nothing has no largest"),
        (lambda x: x[x > 0].aminmax(), "nothing has no largest"),
    ],
)
def test_elements_that_are_not_there_are_an_error_of_the_run(function: Any, message: str) -> None:
    imported = from_torch(Function(function).eval(), (torch.ones(3, 2),))
    name = imported.inputs.tensors[0].name
    for x in (torch.ones(3, 2), torch.tensor([[1.0, 3], [-1, 4], [0, 0]])):
        values = evaluate_graph(imported.graph, {name: x.numpy()}, imported.constants, {})
        found = [values[value] for _, value in imported.outputs]
        for got, want in zip(found, torch.utils._pytree.tree_leaves(function(x)), strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(EvaluationError, match=message):
        evaluate_graph(imported.graph, {name: np.zeros((3, 2), np.float32)}, imported.constants, {})
