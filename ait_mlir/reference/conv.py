"""What convolutions mean: for each element of the window a product in float64, then the epilogue region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.conv import Conv2dOp
from ait_mlir.reference.core import Array, Evaluation, reference


def convolve(
    x: Array, w: Array, stride: Sequence[int], pad: Sequence[int], dilation: Sequence[int], groups: int
) -> Array:
    """Return the cross-correlation of x [N, H, W, Cin] with w [Cout, KH, KW, Cin / groups], of shape [N, OH, OW, Cout].

    `pad` is (top, left, bottom, right).
    """
    top, left, bottom, right = pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    out, height, width, depth = w.shape
    sizes = [
        (padded.shape[1 + i] - dilation[i] * (taps - 1) - 1) // stride[i] + 1 for i, taps in enumerate((height, width))
    ]
    result = np.zeros((len(x), *sizes, groups, out // groups), x.dtype)
    parts = w.reshape(groups, out // groups, height, width, depth)
    for i in range(height):
        for j in range(width):
            rows, columns = (
                slice(start, start + stride[k] * (sizes[k] - 1) + 1, stride[k])
                for k, start in enumerate((i * dilation[0], j * dilation[1]))
            )
            seen = padded[:, rows, columns].reshape(len(x), *sizes, groups, 1, depth)
            result += np.matmul(seen, np.swapaxes(parts[:, :, i, j], 1, 2))[..., 0, :]
    return result.reshape(len(x), *sizes, out)


@reference("ait.conv2d")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    c = cast(Conv2dOp, op)
    x, w, *others = arrays
    result = convolve(x, w, c.strides(), c.pads(), c.dilations(), c.groups.value.data)
    if c.epilogue.blocks:
        (result,) = ev.run_region(c.epilogue, [result, *others])
    return (np.broadcast_to(result, ev.shape(op.results[0].type)),)
