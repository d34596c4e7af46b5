"""Pooling layers on [N, H, W, C] and [N, D, H, W, C]. The default `stride` is the size of the window."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module, OperatorLayer
from ait_mlir.frontend.tensor import Tensor

__all__ = ["AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "AvgPool2d", "MaxPool2d", "MaxPool3d"]

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


class MaxPool3d(Module):
    """The largest element of each window of [N, D, H, W, C]: of D first, then of H and W."""

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0):
        kernel, pad = _triple("kernel_size", kernel_size), _triple("padding", padding)
        step = kernel if stride is None else _triple("stride", stride)
        self.deep = None
        if (kernel[0], step[0], pad[0]) != (1, 1, 0):
            self.deep = ops.max_pool2d((kernel[0], 1), (step[0], 1), (pad[0], 0))
        self.flat = ops.max_pool2d(kernel[1:], step[1:], pad[1:])

    def forward(self, x: Tensor) -> Tensor:
        if x.rank != 5:
            raise BuildError(f"MaxPool3d: x is [N, D, H, W, C], found {x.describe()}")
        batch, depth, height, width, channels = x.shape()
        if self.deep is not None:
            rows = self.deep(ops.reshape()(x, [batch, depth, height * width, channels]))
            depth = rows.shape()[1]
            x = ops.reshape()(rows, [batch, depth, height, width, channels])
        y = self.flat(ops.reshape()(x, [batch * depth, height, width, channels]))
        return ops.reshape()(y, [batch, depth, *y.shape()[1:]])


def _triple(name: str, given: Pair) -> tuple[int, ...]:
    numbers = (given,) * 3 if isinstance(given, int) else tuple(given)
    if len(numbers) != 3:
        raise BuildError(f"MaxPool3d: {name} is a number, or one for each of D, H and W, found {given}")
    return numbers


class AdaptiveAvgPool2d(OperatorLayer):
    """The means of `output_size` windows of about equal size; one number is used for both dims."""

    OPERATOR = ops.adaptive_avg_pool2d


class AdaptiveMaxPool2d(OperatorLayer):
    """The largest elements of `output_size` windows of about equal size."""

    OPERATOR = ops.adaptive_max_pool2d
