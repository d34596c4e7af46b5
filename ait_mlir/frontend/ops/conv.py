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
from ait_mlir.frontend.ops.epilogue import apply_steps, operands_of
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

    def __call__(self, x: Tensor, w: Tensor, *extras: Tensor, **named: Tensor) -> Tensor:
        self.begin(x, w, *extras, *named.values())
        operands = operands_of(self, self.steps, ("b", "r"), extras, named)
        y = self.emit_one(Conv2dOp, [x, w], self.properties, regions=1)
        return self.finish(apply_steps(self, self.steps, y, operands))


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
