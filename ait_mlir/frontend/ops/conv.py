"""Convolutions over two dims. A composite name says what follows: `conv2d_bias_add_relu`.

x is [N, H, W, Cin], the weight [Cout, KH, KW, Cin / groups], the result [N, OH, OW, Cout]; a bias is [Cout], what is
added is of the result's shape. A composite becomes one convolution and one elementwise op for each word behind it;
fusing them again is the work of the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.dialects.ait.conv import Conv2dOp, window
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import binary, clamp, elementwise
from ait_mlir.frontend.ops.gemm import ACTIVATIONS, COMBINERS
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "conv2d",
    "conv2d_bias",
    "conv2d_bias_add",
    "conv2d_bias_add_hardswish",
    "conv2d_bias_add_relu",
    "conv2d_bias_hardswish",
    "conv2d_bias_relu",
    "conv2d_bias_sigmoid",
]


class conv2d(Operator):
    """Cross-correlation; `stride`, `pad` and `dilate` are one number, or one each for height and width.

    x is [N, H, W, Cin], the weight [Cout, KH, KW, Cin / group]; the result is [N, OH, OW, Cout].
    """

    steps: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        stride: int | Sequence[int],
        pad: int | Sequence[int],
        dilate: int | Sequence[int] = 1,
        group: int = 1,
    ):
        super().__init__()
        pairs = {"stride": stride, "pad": pad, "dilate": dilate}
        found = {name: (n, n) if isinstance(n, int) else tuple(n) for name, n in pairs.items()}
        for name, pair in found.items():
            if len(pair) != 2:
                raise BuildError(f"{self.name}: {name} is {list(pair)}, expected one number or two")
        self.properties = window(found["stride"], found["pad"], found["dilate"], group)

    def __call__(self, x: Tensor, w: Tensor, *extras: Tensor) -> Tensor:
        self.begin(x, w, *extras)
        wanted = [step for step in self.steps if step in COMBINERS]
        if len(extras) != len(wanted):
            raise self.fail(
                f"takes {len(wanted)} tensors after x and w ({', '.join(wanted) or 'none'}); {len(extras)} were given"
            )
        y = self.emit_one(Conv2dOp, [x, w], self.properties, regions=1)
        remaining = iter(extras)
        for step in self.steps:
            if step in COMBINERS:
                y = self._combine(step, y, next(remaining))
            elif step == "hardswish":
                y = y * clamp()(y + 3.0, 0.0, 6.0) / 6.0
            else:
                y = elementwise(ACTIVATIONS[step])(y)
        return self.finish(y)

    def _combine(self, step: str, y: Tensor, extra: Tensor) -> Tensor:
        if step == "bias" and (extra.rank != 1 or extra.type.dims[0] is not y.type.dims[-1]):
            raise self.fail(f"the bias must have shape [{y.type.dims[-1]}], found {extra.describe()}")
        if step == "add" and extra.type.dims != y.type.dims:
            raise self.fail(
                f"what is added must have the shape of the result, {y.describe()}, found {extra.describe()}"
            )
        return binary(COMBINERS[step], y, extra)


class conv2d_bias(conv2d):
    """conv2d(x, w) + bias"""

    steps = ("bias",)


class conv2d_bias_relu(conv2d):
    """relu(conv2d(x, w) + bias)"""

    steps = ("bias", "relu")


class conv2d_bias_sigmoid(conv2d):
    """sigmoid(conv2d(x, w) + bias)"""

    steps = ("bias", "sigmoid")


class conv2d_bias_hardswish(conv2d):
    """hardswish(conv2d(x, w) + bias)"""

    steps = ("bias", "hardswish")


class conv2d_bias_add(conv2d):
    """conv2d(x, w) + bias + residual"""

    steps = ("bias", "add")


class conv2d_bias_add_relu(conv2d):
    """relu(conv2d(x, w) + bias + residual)"""

    steps = ("bias", "add", "relu")


class conv2d_bias_add_hardswish(conv2d):
    """hardswish(conv2d(x, w) + bias + residual)"""

    steps = ("bias", "add", "hardswish")
