"""Convolutions: a matrix product if the windows do not overlap and cover an image, else `ait.conv`, channels last."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.contraction import product_with_rows
from ait_mlir.dialects.ait.conv import MAX_RANK, ConvOp, window
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import floordiv, product

MOST_CHANNELS_OF_IMAGES = 4
Pads = tuple[Sequence[int], Sequence[int]]
"""The numbers of zeros before and behind each dim."""


def convolution(
    w: Writer,
    x: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Sequence[int],
    pads: Pads,
    dilation: Sequence[int],
    groups: int,
    tf32: bool = False,
) -> SSAValue:
    """The convolution of x [batch, channels, sizes...] and a weight [out, channels / groups, taps...]; `tf32` as in
    `ait.conv`.
    """
    check_rank(w, weight)
    if groups == 1 and are_patches(w, x, weight, stride, pads, dilation):
        return patches(w, x, weight, bias, tf32)
    properties = window(list(stride), (*pads[0], *pads[1]), list(dilation), groups, tf32=tf32)
    return windows(w, x, weight, bias, properties)


def check_rank(w: Writer, weight: SSAValue) -> None:
    """Refuse a weight without dims of taps, or with too many."""
    if not 1 <= tensor_type(weight).rank - 2 <= MAX_RANK:
        raise w.unsupported("convolutions are supported over one, two and three dims")


def are_patches(
    w: Writer, x: SSAValue, weight: SSAValue, stride: Sequence[int], pads: Pads, dilation: Sequence[int]
) -> bool:
    """Whether the windows do not overlap and cover an image. Tensors with more channels are channels-last between
    convolutions, and their windows would have to be copied.
    """
    if not w.scope.le(tensor_type(x).dims[1], MOST_CHANNELS_OF_IMAGES):
        return False
    taps = [d.as_int() for d in tensor_type(weight).dims[2:]]
    whole = all(w.scope.divisible(e, t or 1) for e, t in zip(tensor_type(x).dims[2:], taps, strict=True))
    plain = not any((*pads[0], *pads[1])) and all(d == 1 for d in dilation)
    return plain and whole and list(stride) == taps and any(t != 1 for t in taps)


def windows(
    w: Writer, x: SSAValue, weight: SSAValue, bias: SSAValue | None, properties: dict[str, Attribute]
) -> SSAValue:
    """`ait.conv` between permutes to channels-last and back; the pass `channels-last` moves these
    to the graph's edges.
    """
    rank = tensor_type(x).rank - 2
    last = [0, *range(2, rank + 2), 1]
    y = w.op(ConvOp, w.permute(x, last), w.permute(weight, last), properties=properties, regions=1)
    return w.permute(_with_bias(w, y, bias), [0, rank + 1, *range(1, rank + 1)])


def transposed(
    w: Writer,
    x: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Sequence[int],
    pads: Pads,
    dilation: Sequence[int],
    groups: int,
    output_pad: Sequence[int],
    tf32: bool = False,
) -> SSAValue:
    """A transposed convolution; the weight [channels, out / groups, taps...] becomes [out, channels
    / groups, taps...].
    """
    check_rank(w, weight)
    channels, out, *taps = tensor_type(weight).dims
    if (count := channels.as_int()) is None:
        raise w.unsupported(f"found {channels} channels, expected a number")
    depth = count // groups
    parts = w.reshape(weight, (groups, depth, out, *taps))
    swapped = w.permute(parts, [0, 2, 1, *range(3, 3 + len(taps))])
    weight = w.reshape(swapped, (out * groups, depth, *taps))
    if any(n < 0 for n in (*pads[0], *pads[1], *output_pad)):
        raise w.unsupported("negative padding of a transposed convolution is not supported")
    properties = window(list(stride), (*pads[0], *pads[1]), list(dilation), groups, True, list(output_pad), tf32)
    return windows(w, x, weight, bias, properties)


def _with_bias(w: Writer, y: SSAValue, bias: SSAValue | None) -> SSAValue:
    return y if bias is None else w.add(y, bias)


def patches(w: Writer, x: SSAValue, weight: SSAValue, bias: SSAValue | None, tf32: bool = False) -> SSAValue:
    """The convolution as a matrix product with a row for each window."""
    out, depth, *taps = tensor_type(weight).dims
    batch, channels, *sizes = tensor_type(x).dims
    rank, counts = len(taps), [floordiv(n, t) for n, t in zip(sizes, taps, strict=True)]
    # [batch, channels, n0, w0, n1, w1] to [batch, n0, n1, channels, w0, w1]
    cut = w.reshape(x, (batch, channels, *(d for pair in zip(counts, taps, strict=True) for d in pair)))
    order = [0, *(2 + 2 * i for i in range(rank)), 1, *(3 + 2 * i for i in range(rank))]
    rows = w.reshape(w.permute(cut, order), (batch, product(counts), product([channels, *taps])))
    y = product_with_rows(w, rows, w.reshape(weight, (out, product([depth, *taps]))), tf32)
    y = _with_bias(w, y, bias)
    return w.permute(w.reshape(y, (batch, *counts, out)), [0, rank + 1, *range(1, rank + 1)])
