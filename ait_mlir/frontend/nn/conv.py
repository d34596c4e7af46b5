"""Convolutions, some with further steps; tensors are [batch, sizes..., channels]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops.conv import convolution
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "Conv1d", "Conv1dBias", "Conv2d", "Conv2dBias", "Conv2dBiasAdd", "Conv2dBiasAddHardswish", "Conv2dBiasAddRelu",
    "Conv2dBiasFewChannels", "Conv2dBiasHardswish", "Conv2dBiasHardswishFewChannels", "Conv2dBiasRelu",
    "Conv2dBiasReluFewChannels", "Conv2dBiasSigmoid", "Conv2dDepthwise", "Conv2dDepthwiseBias", "Conv3d",
    "Conv3dBias", "ConvTranspose2d", "ConvTranspose2dBias", "ConvTranspose2dBiasRelu",
]  # fmt: skip

Numbers = int | Sequence[int]


class Convolution(Module):
    """Base: a convolution, then the steps in the name of its operator. With the step `add`, a call takes one more
    argument.

    The weight is [out_channels, taps..., in_channels / groups]. With `bias`, or if the class has a bias, a bias of
    [out_channels] is added.
    """

    operator: ClassVar[str]
    sizes: ClassVar[int] = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        dtype: str = "float16",
        bias: bool = False,
    ):
        taps = [kernel_size] * self.sizes if isinstance(kernel_size, int) else list(kernel_size)
        has_bias = bias or "_bias" in self.operator
        self.weight = Parameter(self.weight_shape(in_channels, out_channels, taps, groups), dtype)
        self.bias = Parameter([out_channels], dtype) if has_bias else None
        name = self.operator if "_bias" in self.operator or not bias else f"{self.operator}_bias"
        self.op = self.make(name, stride, padding, dilation, groups)

    def weight_shape(self, in_channels: int, out_channels: int, taps: list[int], groups: int) -> list[int]:
        return [out_channels, *taps, in_channels // groups]

    def make(self, name: str, stride: Numbers, padding: Numbers, dilation: Numbers, groups: int) -> convolution:
        return getattr(ops, name)(stride, padding, dilation, groups)

    def forward(self, x: Tensor, *extras: Tensor) -> Tensor:
        weights = [self.weight.tensor(), *([] if self.bias is None else [self.bias.tensor()])]
        return self.op(x, *weights, *extras)


class ConvTranspose2d(Convolution):
    """The transposed convolution; the weight is [in_channels, KH, KW, out_channels / groups]."""

    operator = "transposed_conv2d"

    def weight_shape(self, in_channels: int, out_channels: int, taps: list[int], groups: int) -> list[int]:
        return [in_channels, *taps, out_channels // groups]


class FewChannels(Convolution):
    """A convolution of at most 8 input channels, which has one group."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        auto_padding: bool = True,
        dtype: str = "float16",
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 1, dtype)

    def make(self, name: str, stride: Numbers, padding: Numbers, dilation: Numbers, groups: int) -> convolution:
        return getattr(ops, name)(stride, padding, dilation)


def _define(name: str, operator: str, base: type[Convolution] = Convolution, sizes: int = 2) -> type[Convolution]:
    doc = f"{base.__doc__}\n\nOperator: {operator}."
    return type(name, (base,), {"operator": operator, "sizes": sizes, "__doc__": doc, "__module__": __name__})


class Conv1d(Convolution):
    """The convolution along one dim; the weight is [out_channels, taps, in_channels / groups].

    Its weights are named at once, `conv1d_weight` and `conv1d_bias`, by the argument `name`.
    """

    operator, sizes = "conv1d", 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        dtype: str = "float16",
        bias: bool = False,
        name: str = "conv1d",
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, dtype, bias)
        self.name_parameter_tensor(f"{name}_")


Conv1dBias = _define("Conv1dBias", "conv1d_bias", sizes=1)
Conv2d = _define("Conv2d", "conv2d")
Conv2dBias = _define("Conv2dBias", "conv2d_bias")
Conv2dBiasAdd = _define("Conv2dBiasAdd", "conv2d_bias_add")
Conv2dBiasAddHardswish = _define("Conv2dBiasAddHardswish", "conv2d_bias_add_hardswish")
Conv2dBiasAddRelu = _define("Conv2dBiasAddRelu", "conv2d_bias_add_relu")
Conv2dBiasFewChannels = _define("Conv2dBiasFewChannels", "conv2d_bias_few_channels", FewChannels)
Conv2dBiasHardswish = _define("Conv2dBiasHardswish", "conv2d_bias_hardswish")
Conv2dBiasHardswishFewChannels = _define(
    "Conv2dBiasHardswishFewChannels", "conv2d_bias_hardswish_few_channels", FewChannels
)
Conv2dBiasRelu = _define("Conv2dBiasRelu", "conv2d_bias_relu")
Conv2dBiasReluFewChannels = _define("Conv2dBiasReluFewChannels", "conv2d_bias_relu_few_channels", FewChannels)
Conv2dBiasSigmoid = _define("Conv2dBiasSigmoid", "conv2d_bias_sigmoid")
Conv2dDepthwise = _define("Conv2dDepthwise", "conv2d_depthwise")
Conv2dDepthwiseBias = _define("Conv2dDepthwiseBias", "conv2d_depthwise_bias")
Conv3d = _define("Conv3d", "conv3d", sizes=3)
Conv3dBias = _define("Conv3dBias", "conv3d_bias", sizes=3)
ConvTranspose2dBias = _define("ConvTranspose2dBias", "transposed_conv2d_bias", ConvTranspose2d)
ConvTranspose2dBiasRelu = _define("ConvTranspose2dBiasRelu", "transposed_conv2d_bias_relu", ConvTranspose2d)
