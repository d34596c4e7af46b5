"""Resampling layers of [N, H, W, C]."""

from __future__ import annotations

from typing import Literal

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.tensor import Tensor

Mode = Literal["nearest", "nearest-exact", "bilinear", "bicubic"]


class Upsampling2d(Module):
    """H and W are multiplied by `scale_factor`."""

    def __init__(self, scale_factor: float, mode: Mode, align_corners: bool = False):
        self.operator = ops.upsampling2d(scale_factor, mode, align_corners)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x)


class Upsampling2dAdd(Module):
    """H and W are multiplied by `scale_factor`, then a residual is added."""

    def __init__(self, scale_factor: float, mode: Mode, align_corners: bool = False):
        self.operator = ops.upsampling2d_add(scale_factor, mode, align_corners)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.operator(x, residual)
