"""Functions whose sizes or numbers are dims, by their meaning, against eager."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from ait_mlir.importers.torch import ImportFailure, from_torch
from ait_mlir.reference.graph import evaluate_graph
from tests.importers.function import FunctionOfX

LABELS = torch.tensor([[1, 1, 2], [3, 5, 9], [2, 4, 4]])
LENGTHS = torch.tensor([3, 2, 0])
JOINED = torch.tensor([1, 1, 2, 3, 5])


def aligned(x: torch.Tensor, labels: torch.Tensor, shorter: int = 0, **options) -> torch.Tensor:
    """A loss of three sequences, the last one of which is `shorter`."""
    logs = torch.stack([x, x * 2, x.flip(1)], 1).log_softmax(-1)
    steps = torch.full((3,), x.shape[0]) - torch.tensor([0, 0, shorter])
    return F.ctc_loss(logs, labels, steps, LENGTHS, **options)


CASES = {
    "alignment": lambda x: (
        aligned(x, LABELS, reduction="none"),
        aligned(x, LABELS, 1, zero_infinity=True),
        aligned(x, JOINED, 1, reduction="sum", blank=4),
        nn.CTCLoss(zero_infinity=True)(x.log_softmax(-1), LABELS[0], (x.shape[0],), (3,)),
    ),
    "alignment of lists": lambda x: F.ctc_loss(
        x[None, 0].expand(4, 6).reshape(4, 1, 6).log_softmax(-1), LABELS[:1], [3], [2], reduction="none"
    ),
    "upper triangle": lambda x: (x @ x.T)[tuple(torch.triu_indices(x.shape[0], x.shape[0], 1))],
    "triangles of a rectangle": lambda x: (
        torch.tril_indices(x.shape[0], 3, 1),
        torch.tril_indices(4, x.shape[0], -2),
        torch.triu_indices(4, x.shape[0], -2, dtype=torch.int32),
        torch.triu_indices(x.shape[0], x.shape[0], 2),
    ),
    "combinations": lambda x: (torch.combinations(x[:, 0]), torch.combinations(x[:, 0], with_replacement=True)),
    "combinations of three": lambda x: torch.combinations(x[:, 0], 3, with_replacement=True),
    "windows": lambda x: (
        torch.hann_window(x.shape[0]),
        torch.hann_window(x.shape[0], False, dtype=torch.float64),
        torch.hamming_window(x.shape[0], periodic=False, alpha=0.5),
        torch.blackman_window(x.shape[0]),
        torch.bartlett_window(x.shape[0]),
    ),
    "windows of Bessel functions": lambda x: torch.kaiser_window(x.shape[0], False, beta=3.0),
    "powers of a base": lambda x: (torch.logspace(0, 1, x.shape[0]), torch.logspace(-1, 1, x.shape[0], base=2.0)),
    "frequencies": lambda x: (torch.fft.fftfreq(x.shape[0], 0.5), torch.fft.rfftfreq(x.shape[0])),
    "pooled to a part": lambda x: F.adaptive_avg_pool1d(x.T, (x.shape[0] + 1) // 2),
    "largest of a part": lambda x: F.adaptive_max_pool2d(x[None], ((x.shape[0] + 1) // 2, 4)),
    "largest of a part and its place": lambda x: (
        *F.adaptive_max_pool2d(x[None].round(), ((x.shape[0] + 1) // 2, 4), return_indices=True),
        *F.adaptive_max_pool1d(x.T.sign(), (x.shape[0] + 2) // 3, return_indices=True),
    ),
    "grid of points": lambda x: F.affine_grid(x[None, :1].reshape(1, 2, 3), [1, 1, x.shape[0], 3], align_corners=False),
    "grid of points at corners": lambda x: F.affine_grid(x[:1].reshape(1, 2, 3), [1, 1, 3, x.shape[0]], True),
    "loss that checks its values": lambda x: nn.GaussianNLLLoss(full=True)(x, x * 0.5, x.exp()),
    "steps of a part": lambda x: torch.arange(0, 1, 1 / x.shape[0])[:, None] * x,
    "logarithms": lambda x: (
        x * math.log(x.shape[0]) + math.log2(x.shape[0]) - math.log(x.shape[0], 10) * math.log10(x.shape[0]),
        torch.full((2,), -math.log1p(x.shape[0])),
        x[0] * (np.log(x.shape[0]) / np.sqrt(x.shape[0])),
    ),
    "whole logarithms and roots": lambda x: (
        x.repeat(1, 1 + int(math.log2(x.shape[0]))),
        x[: math.ceil(math.log(x.shape[0], 3))],
        x.new_zeros(math.floor(math.log10(x.shape[0])), math.isqrt(x.shape[0])),
        x * int(math.log(x.shape[0])),
    ),
    "a part by a quotient": lambda x: (x[: int(x.shape[0] / 3 * 2)], x[int(x.shape[0] * 0.5) :]),
    "other functions": lambda x: x * math.exp(-x.shape[0]) + math.sin(x.shape[0]) * math.tanh(math.radians(x.shape[0])),
    "of a number of the run": lambda x: x * math.log(x.abs().sum().item()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_against_eager(name: str) -> None:
    torch.manual_seed(0)
    model = FunctionOfX(CASES[name]).eval()
    dim = Dim("n", min=1, max=24)
    imported = from_torch(model, (torch.randn(5, 6),), dynamic_shapes={"x": {0: dim}})
    for size in (1, 2, 9):
        x = torch.randn(size, 6)
        values = evaluate_graph(imported.graph, {"x": x.numpy()}, imported.constants, {"n": size})
        expected = torch.utils._pytree.tree_leaves(model(x))
        assert len(imported.outputs) == len(expected)
        for (_, found), wanted in zip(imported.outputs, expected, strict=True):
            assert values[found].shape == wanted.shape
            np.testing.assert_allclose(values[found], wanted.numpy(), rtol=2e-5, atol=2e-6)


def test_gradient() -> None:
    model = FunctionOfX(lambda x: torch.gradient(x, spacing=0.5)).eval()
    imported = from_torch(model, (torch.randn(5, 6),), dynamic_shapes={"x": {0: Dim("n", min=2, max=24)}})
    for size in (2, 3, 9):
        x = torch.randn(size, 6)
        values = evaluate_graph(imported.graph, {"x": x.numpy()}, imported.constants, {"n": size})
        for (_, found), wanted in zip(imported.outputs, model(x), strict=True):
            np.testing.assert_allclose(values[found], wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_a_size_that_floats_round_up_is_refused() -> None:
    model = FunctionOfX(lambda x: torch.arange(0, 1, 1 / x.shape[0])).eval()
    from_torch(model, (torch.randn(5, 6),), dynamic_shapes={"x": {0: Dim("n", min=1, max=48)}})
    with pytest.raises(ImportFailure, match=r"is 50 for n = 49.* declare Dim\('n', max=48\)"):
        from_torch(model, (torch.randn(5, 6),), dynamic_shapes={"x": {0: Dim("n", min=1, max=49)}})
    model = FunctionOfX(lambda x: x.new_zeros(math.floor(x.shape[0] / 49 * 49))).eval()
    with pytest.raises(ImportFailure, match="is 0 for n = 1, because floats are rounded"):
        from_torch(model, (torch.randn(5, 6),), dynamic_shapes={"x": {0: Dim("n", min=1, max=60)}})


DECIDED = {
    "a whole logarithm": lambda x: x * 2 if int(math.log2(x.shape[0])) > 2 else x,
    "a logarithm": lambda x: x * 2 if math.log(x.shape[0]) > 1.5 else x,
}


@pytest.mark.parametrize("name", DECIDED)
def test_a_decision_by_a_float_of_a_dim_is_refused(name: str) -> None:
    with pytest.raises(ImportFailure, match="to be dynamic is not"):
        from_torch(FunctionOfX(DECIDED[name]).eval(), (torch.randn(5, 6),), dynamic_shapes={"x": {0: Dim("n", min=3)}})
