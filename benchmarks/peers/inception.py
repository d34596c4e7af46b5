"""Inception-v3 in plain PyTorch (arXiv:1512.00567): blocks of parallel branches, joined along the channels."""

from __future__ import annotations

import torch
from torch import nn


class Conv(nn.Sequential):
    """Convolution, batch norm, relu."""

    def __init__(self, ins: int, outs: int, kernel: int | tuple[int, int], stride: int = 1, same: bool = True):
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = tuple(k // 2 for k in sides) if same else 0
        super().__init__(
            nn.Conv2d(ins, outs, sides, stride, padding, bias=False), nn.BatchNorm2d(outs, eps=1e-3), nn.ReLU()
        )


class Branches(nn.Module):
    """Modules that read one tensor; their results are joined."""

    def __init__(self, *branches: nn.Module):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def average() -> nn.Module:
    return nn.AvgPool2d(3, 1, 1)


def block_35(ins: int, pooled: int) -> nn.Module:
    return Branches(
        Conv(ins, 64, 1),
        nn.Sequential(Conv(ins, 48, 1), Conv(48, 64, 5)),
        nn.Sequential(Conv(ins, 64, 1), Conv(64, 96, 3), Conv(96, 96, 3)),
        nn.Sequential(average(), Conv(ins, pooled, 1)),
    )


def to_17(ins: int) -> nn.Module:
    return Branches(
        Conv(ins, 384, 3, 2, same=False),
        nn.Sequential(Conv(ins, 64, 1), Conv(64, 96, 3), Conv(96, 96, 3, 2, same=False)),
        nn.MaxPool2d(3, 2),
    )


def block_17(ins: int, c: int) -> nn.Module:
    row, column = (1, 7), (7, 1)
    return Branches(
        Conv(ins, 192, 1),
        nn.Sequential(Conv(ins, c, 1), Conv(c, c, row), Conv(c, 192, column)),
        nn.Sequential(Conv(ins, c, 1), Conv(c, c, column), Conv(c, c, row), Conv(c, c, column), Conv(c, 192, row)),
        nn.Sequential(average(), Conv(ins, 192, 1)),
    )


def to_8(ins: int) -> nn.Module:
    return Branches(
        nn.Sequential(Conv(ins, 192, 1), Conv(192, 320, 3, 2, same=False)),
        nn.Sequential(
            Conv(ins, 192, 1), Conv(192, 192, (1, 7)), Conv(192, 192, (7, 1)), Conv(192, 192, 3, 2, same=False)
        ),
        nn.MaxPool2d(3, 2),
    )


def block_8(ins: int) -> nn.Module:
    def ends() -> nn.Module:
        return Branches(Conv(384, 384, (1, 3)), Conv(384, 384, (3, 1)))

    return Branches(
        Conv(ins, 320, 1),
        nn.Sequential(Conv(ins, 384, 1), ends()),
        nn.Sequential(Conv(ins, 448, 1), Conv(448, 384, 3), ends()),
        nn.Sequential(average(), Conv(ins, 192, 1)),
    )


def inception_v3() -> nn.Module:
    """Images [batch, 3, 299, 299] to 1000 scores, without the auxiliary classifier."""
    return nn.Sequential(
        Conv(3, 32, 3, 2, same=False),
        Conv(32, 32, 3, same=False),
        Conv(32, 64, 3),
        nn.MaxPool2d(3, 2),
        Conv(64, 80, 1),
        Conv(80, 192, 3, same=False),
        nn.MaxPool2d(3, 2),
        *(block_35(ins, pooled) for ins, pooled in ((192, 32), (256, 64), (288, 64))),
        to_17(288),
        *(block_17(768, c) for c in (128, 160, 160, 192)),
        to_8(768),
        block_8(1280),
        block_8(2048),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    ).eval()


def inputs(batch: int, dtype: torch.dtype) -> list[torch.Tensor]:
    return [torch.randn(batch, 3, 299, 299, generator=torch.Generator().manual_seed(batch)).to(dtype)]
