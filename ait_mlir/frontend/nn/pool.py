"""Pooling layers on [N, H, W, C]. The default `stride` is the size of the window."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.tensor import Tensor

Pair = int | Sequence[int]


class MaxPool2d(Module):
    """The largest element of each window."""

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, ceil_mode: bool = False):
        self.operator = ops.max_pool2d(kernel_size, kernel_size if stride is None else stride, padding, ceil_mode)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x)


class AvgPool2d(Module):
    """The mean of each window; the pads are zeros, which count unless `count_include_pad` is false."""

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        step = kernel_size if stride is None else stride
        self.operator = ops.avg_pool2d(kernel_size, step, padding, ceil_mode, count_include_pad)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x)


class AdaptiveAvgPool2d(Module):
    """The means of `output_size` windows of about equal size; one number is used for both dims."""

    def __init__(self, output_size: DimLike | Sequence[DimLike]):
        self.operator = ops.adaptive_avg_pool2d(output_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x)


class AdaptiveMaxPool2d(Module):
    """The largest elements of `output_size` windows of about equal size."""

    def __init__(self, output_size: DimLike | Sequence[DimLike]):
        self.operator = ops.adaptive_max_pool2d(output_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x)
