"""Convolutions. A composite name lists the steps that follow: `conv2d_bias_add_relu`.

x is [N, sizes..., Cin], the weight [Cout, taps..., Cin / group], the result [N, places..., Cout]; a bias is [Cout], and
an added tensor has the shape of the result. A composite becomes one convolution and one elementwise op for each further
word; the passes fuse them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.dialects.ait.conv import ConvOp, window
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.epilogue import apply_steps, operands_of, steps_of
from ait_mlir.frontend.ops.view import permute, reshape
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "conv1d", "conv1d_bias", "conv2d", "conv2d_bias", "conv2d_bias_add", "conv2d_bias_add_hardswish",
    "conv2d_bias_add_relu", "conv2d_bias_few_channels", "conv2d_bias_hardswish",
    "conv2d_bias_hardswish_few_channels", "conv2d_bias_relu", "conv2d_bias_relu_few_channels",
    "conv2d_bias_sigmoid", "conv2d_depthwise", "conv2d_depthwise_bias", "conv2d_groups", "conv3d", "conv3d_bias",
    "depthwise_conv3d", "transposed_conv2d", "transposed_conv2d_bias", "transposed_conv2d_bias_relu",
]  # fmt: skip

Numbers = int | Sequence[int]


class convolution(Operator):
    """Cross-correlation, then the steps of its name; `bias` and `add` each take the next of `extras`.

    `stride`, `pad` and `dilate` are one number, or one for each of the `sizes`. The extras may be given as `b=` and
    `r=`, too.
    """

    sizes: ClassVar[int]
    steps: ClassVar[tuple[str, ...]] = ()

    def __init__(self, stride: Numbers, pad: Numbers, dilate: Numbers = 1, group: int = 1):
        found = {name: self.each(name, n) for name, n in (("stride", stride), ("pad", pad), ("dilate", dilate))}
        self.properties = window(found["stride"], found["pad"], found["dilate"], group)

    def each(self, name: str, given: Numbers) -> tuple[int, ...]:
        """An argument for each of the sizes."""
        numbers = (given,) * self.sizes if isinstance(given, int) else tuple(given)
        if len(numbers) != self.sizes:
            raise BuildError(f"{self.name}: {name} is {list(numbers)}, expected one number or {self.sizes}")
        return numbers

    def __call__(self, x: Tensor, w: Tensor, *extras: Tensor, **named: Tensor) -> Tensor:
        self.begin(x, w, *extras, *named.values())
        operands = operands_of(self, self.steps, ("b", "r"), extras, named)
        if x.rank != self.sizes + 2:
            raise self.fail(f"x must have {self.sizes + 2} dims, found {x.describe()}")
        y = self.emit_one(ConvOp, [x, self.weight(w)], self.properties, regions=1)
        return self.finish(apply_steps(self, self.steps, y, operands))

    def weight(self, w: Tensor) -> Tensor:
        """The weight as [Cout, taps..., Cin / group]."""
        return w


class conv2d_few_channels(convolution):
    """A convolution of at most 8 input channels, such as an image, then the steps of its name.

    The kernels take any number of channels, so `auto_padding` has no effect.
    """

    sizes = 2

    def __init__(self, stride: Numbers, pad: Numbers, dilate: Numbers = 1, auto_padding: bool = True):
        super().__init__(stride, pad, dilate)

    def __call__(self, x: Tensor, w: Tensor, *extras: Tensor, **named: Tensor) -> Tensor:
        self.begin(x, w)
        channels = x.type.dims[-1].as_int()
        if channels is None or channels > 8:
            raise self.fail(f"takes at most 8 input channels, found {x.type.dims[-1]}; use conv2d")
        return super().__call__(x, w, *extras, **named)


class transposed(convolution):
    """The transposed convolution, which is the gradient of a convolution, then the steps of its name.

    x is [N, H, W, Cin], the weight [Cin, KH, KW, Cout / group], the result [N, OH, OW, Cout] with
    OH = (H - 1) * stride - 2 * pad + dilate * (KH - 1) + output_pad + 1.
    """

    sizes = 2

    def __init__(self, stride: Numbers, pad: Numbers, dilate: Numbers = 1, group: int = 1, output_pad: Numbers = 0):
        super().__init__(stride, pad, dilate, group)
        self.group = group
        self.properties |= window(transposed=True, output_pad=self.each("output_pad", output_pad))

    def weight(self, w: Tensor) -> Tensor:
        if w.rank != self.sizes + 2:
            raise self.fail(f"the weight must be [Cin, KH, KW, Cout / group], found {w.describe()}")
        channels, *taps, out = w.shape()
        if self.group == 1:
            return permute()(w, [3, 1, 2, 0])
        parts = reshape()(w, [self.group, channels / self.group, *taps, out])
        return reshape()(permute()(parts, [0, 4, 2, 3, 1]), [out * self.group, *taps, channels / self.group])


def _define(name: str, family: str, base: type[convolution] = convolution, sizes: int = 2) -> type[convolution]:
    """The operator class for a composite name: the words after `family` are its steps."""
    steps = steps_of(name.removeprefix(family).removesuffix("_few_channels"))
    doc = f"{base.__doc__}\n\nSteps: {', '.join((family, *steps))}."
    return type(name, (base,), {"sizes": sizes, "steps": steps, "__doc__": doc, "__module__": __name__})


conv1d = _define("conv1d", "conv1d", sizes=1)
conv1d_bias = _define("conv1d_bias", "conv1d", sizes=1)
conv2d = _define("conv2d", "conv2d")
conv2d_bias = _define("conv2d_bias", "conv2d")
conv2d_bias_relu = _define("conv2d_bias_relu", "conv2d")
conv2d_bias_sigmoid = _define("conv2d_bias_sigmoid", "conv2d")
conv2d_bias_hardswish = _define("conv2d_bias_hardswish", "conv2d")
conv2d_bias_add = _define("conv2d_bias_add", "conv2d")
conv2d_bias_add_relu = _define("conv2d_bias_add_relu", "conv2d")
conv2d_bias_add_hardswish = _define("conv2d_bias_add_hardswish", "conv2d")
conv2d_bias_few_channels = _define("conv2d_bias_few_channels", "conv2d", conv2d_few_channels)
conv2d_bias_relu_few_channels = _define("conv2d_bias_relu_few_channels", "conv2d", conv2d_few_channels)
conv2d_bias_hardswish_few_channels = _define("conv2d_bias_hardswish_few_channels", "conv2d", conv2d_few_channels)
conv2d_depthwise = _define("conv2d_depthwise", "conv2d_depthwise")
conv2d_depthwise_bias = _define("conv2d_depthwise_bias", "conv2d_depthwise")
conv2d_groups = _define("conv2d_groups", "conv2d_groups")
conv3d = _define("conv3d", "conv3d", sizes=3)
conv3d_bias = _define("conv3d_bias", "conv3d", sizes=3)
transposed_conv2d = _define("transposed_conv2d", "transposed_conv2d", transposed)
transposed_conv2d_bias = _define("transposed_conv2d_bias", "transposed_conv2d", transposed)
transposed_conv2d_bias_relu = _define("transposed_conv2d_bias_relu", "transposed_conv2d", transposed)


class depthwise_conv3d(Operator):
    """A depthwise convolution with `group` channels; with `bias`, a bias is added.

    x is [N, D, H, W, C], the weight [Cout, KD, KH, KW, 1].
    """

    def __init__(self, stride: Numbers, pad: Numbers, dilate: Numbers = 1, group: int = 1, bias: bool = False):
        self.inner = (conv3d_bias if bias else conv3d)(stride, pad, dilate, group)
        self.inner.label = self.name

    def __call__(self, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.finish(self.inner(x, w, *([] if bias is None else [bias])))
