"""Layers whose operations become others before kernels are chosen, on the card beside PyTorch and float64."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import ait_mlir

pytestmark = pytest.mark.gpu

F16, F32 = torch.float16, torch.float32


class Product(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.mT


def attention(q: torch.Tensor) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(q, q, q)


class Attention(nn.Module):
    def forward(self, q: torch.Tensor) -> torch.Tensor:
        return attention(q)


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], torch.dtype]] = {
    "phases along lines": (lambda: nn.ConvTranspose2d(16, 8, 4, 2, 1), (2, 16, 9, 7), F16),
    "a product for all phases": (lambda: nn.ConvTranspose2d(16, 8, 2, 2), (2, 16, 9, 7), F16),
    "a convolution for each phase": (lambda: nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), (2, 16, 9, 7), F16),
    "between convolutions": (
        lambda: nn.Sequential(nn.ConvTranspose2d(16, 8, 2, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 1, 1)), (2, 16, 9, 7), F16,
    ),
    "many phases of a line": (lambda: nn.ConvTranspose1d(16, 8, 16, 8, 4), (2, 16, 33), F16),
    "three dims": (lambda: nn.ConvTranspose3d(8, 8, 3, 2, 1), (2, 8, 3, 5, 7), F16),
    "no steps": (lambda: nn.ConvTranspose2d(16, 8, 3, 1, 1), (2, 16, 9, 7), F32),
    "groups": (lambda: nn.ConvTranspose2d(16, 16, 4, 2, 1, groups=4), (2, 16, 9, 7), F16),
    "depthwise phases": (lambda: nn.ConvTranspose2d(16, 16, 4, 2, 1, groups=16), (2, 16, 9, 7), F16),
    "gaps between taps": (lambda: nn.ConvTranspose2d(16, 8, 3, 2, 2, 1, dilation=2), (2, 16, 9, 7), F16),
    "depthwise, channels first": (lambda: nn.Conv2d(64, 64, 7, 1, 3, groups=64), (2, 64, 28, 28), F16),
    "a long window": (lambda: nn.Conv1d(16, 16, 128, padding=64), (2, 16, 300), F16),
    "a long sum": (Product, (48, 131072), F16),
    "a long sum in f32": (Product, (48, 131072), F32),
    "attention in f32": (Attention, (2, 4, 130, 64), F32),
    "hidden states": (lambda: nn.RNN(32, 32, batch_first=True), (4, 9, 32), F16),
    "both directions": (lambda: nn.LSTM(32, 32, 2, batch_first=True, bidirectional=True), (4, 9, 32), F16),
}  # fmt: skip


def first(result: torch.Tensor | tuple[torch.Tensor, ...]) -> torch.Tensor:
    return (result[0] if isinstance(result, tuple) else result).cpu().double()


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str):
    make, shape, dtype = LAYERS[name]
    torch.manual_seed(0)
    module, x = make().eval().to(dtype), torch.randn(*shape).to(dtype)
    with torch.inference_mode():
        exact = first(copy.deepcopy(module).double()(x.double()))
        module, x = module.cuda(), x.cuda()
        theirs = (first(module(x)) - exact).abs()
        ours = (first(ait_mlir.compile(module, (x,), target="cuda", measure=False)(x)) - exact).abs()
    ulp = torch.finfo(dtype).eps * float(exact.abs().max())
    assert ours.max() <= 2 * theirs.max() + ulp and ours.square().mean() <= (1.5**2) * theirs.square().mean() + ulp**2
