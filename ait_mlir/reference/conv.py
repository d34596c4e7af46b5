"""Reference semantics of convolutions: a product in float64 for each tap of the window, then the epilogue region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference

Index = tuple[slice, ...]


def taps(
    kernel: Sequence[int], places: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[Index, tuple[int, ...]]]:
    """Yield for each tap of the window the elements of the padded tensor that it multiplies, and the tap's index."""
    for tap in product(*map(range, kernel)):
        starts = [t * d for t, d in zip(tap, dilation, strict=True)]
        met = tuple(
            slice(start, start + step * (count - 1) + 1 if count else start, step)
            for start, count, step in zip(starts, places, stride, strict=True)
        )
        yield met, tap


def convolve(
    x: Array, w: Array, stride: Sequence[int], pad: Sequence[int], dilation: Sequence[int], groups: int
) -> Array:
    """The cross-correlation of x [N, sizes..., Cin] with w [Cout, taps..., Cin / groups]: [N, places..., Cout].

    `pad` lists the number of zeros before each spatial dim, then after each.
    """
    out, *kernel, depth = w.shape
    rank = len(kernel)
    padded = np.pad(x, ((0, 0), *zip(pad[:rank], pad[rank:], strict=True), (0, 0)))
    places = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(padded.shape[1:-1], kernel, stride, dilation, strict=True)
    ]
    result = np.zeros((len(x), *places, groups, 1, out // groups), x.dtype)
    parts = w.reshape(groups, out // groups, *kernel, depth)
    for met, tap in taps(kernel, places, stride, dilation):
        seen = padded[:, *met].reshape(len(x), *places, groups, 1, depth)
        result += np.matmul(seen, np.swapaxes(parts[:, :, *tap], 1, 2))
    return result.reshape(len(x), *places, out)


def spread(
    x: Array,
    w: Array,
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_pad: Sequence[int],
) -> Array:
    """The transposed convolution: each element of x adds its window to the result."""
    out, *kernel, depth = w.shape
    rank, sizes = len(kernel), x.shape[1:-1]
    whole = [
        max((n - 1) * s + d * (k - 1) + 1 + e, 0)
        for n, k, s, d, e in zip(sizes, kernel, stride, dilation, output_pad, strict=True)
    ]
    result = np.zeros((len(x), *whole, groups, 1, out // groups), x.dtype)
    given = x.reshape(len(x), *sizes, groups, 1, depth)
    parts = w.reshape(groups, out // groups, *kernel, depth)
    for met, tap in taps(kernel, sizes, stride, dilation):
        result[:, *met] += np.matmul(given, np.swapaxes(parts[:, :, *tap], 1, 2))
    inside = tuple(slice(pad[i], whole[i] - pad[rank + i]) for i in range(rank))
    result = result[:, *inside]
    return result.reshape(*result.shape[: 1 + rank], out)


@reference(ConvOp)
def _(c: ConvOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, w, *others = arrays
    of_integers = x.dtype.kind != "f"
    if of_integers:  # float64 holds the sums exactly
        x, w = x.astype(np.float64), w.astype(np.float64)
    numbers = (c.strides(), c.pads(), c.dilations(), c.num_groups())
    result = spread(x, w, *numbers, c.output_pads()) if c.is_transposed() else convolve(x, w, *numbers)
    if of_integers:
        result = result.astype(np.int64).astype(np.int32)
    results = ev.run_region(c.epilogue, [result, *others]) if c.epilogue.blocks else [result]
    return ev.whole(results, c)
