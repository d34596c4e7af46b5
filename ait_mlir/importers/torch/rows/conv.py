"""Convolutions: a matrix product if the windows do not overlap and cover an image, else `ait.conv`, channels last."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions.contraction import product_with_rows
from ait_mlir.dialects.ait.conv import MAX_RANK, ConvOp, window
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, floordiv, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.rows.common import each
from ait_mlir.importers.torch.rows.view import cut

MOST_CHANNELS_OF_IMAGES = 4


def convolution(c: Call) -> Value:
    """The convolution of x [batch, channels, sizes...] (or without a batch) and a weight [out, channels / groups,
    taps...].
    """
    x, weight = c.tensor("input"), c.tensor("weight")
    taps = tensor_type(weight).dims[2:]
    rank = len(taps)
    if not 1 <= rank <= MAX_RANK:
        raise NotSupported("convolutions are supported over one, two and three dims")
    single = tensor_type(x).rank == rank + 1
    if single:
        x = c.w.reshape(x, (1, *tensor_type(x).dims))
    stride, dilation = (each(c[name], rank) for name in ("stride", "dilation"))
    pad = pads(c["padding"], taps, dilation, rank)
    if isinstance(c["groups"], Expr):
        y = grouped_by_dim(c, x, weight, stride, pad, dilation)
    elif c["transposed"] or "transpose" in str(c.node.target):
        y = transposed(c, x, weight, stride, pad, dilation)
    elif are_patches(c, x, stride, pad, dilation):
        y = patches(c, x, weight)
    else:
        y = windows(c, x, weight, window(stride, (*pad[0], *pad[1]), dilation, c["groups"]))
    return c.w.reshape(y, c.dims) if single else y


def pads(given: object, taps: Sequence[Expr], dilation: Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """The numbers of zeros before and after each dim. `same` keeps the size, with an odd zero at the end; `valid` has
    none.
    """
    if given == "valid":
        return [0] * rank, [0] * rank
    if given == "same":
        both = [d * ((t.as_int() or 1) - 1) for d, t in zip(dilation, taps, strict=True)]
        return [n // 2 for n in both], [n - n // 2 for n in both]
    return each(given, rank), each(given, rank)


def are_patches(c: Call, x: SSAValue, stride: list[int], pad: tuple[list[int], list[int]], dilation: list[int]) -> bool:
    """Whether the windows do not overlap and cover an image. Tensors with more channels are channels-last between
    convolutions, and their windows would have to be copied.
    """
    if c["groups"] != 1 or not c.w.scope.le(tensor_type(x).dims[1], MOST_CHANNELS_OF_IMAGES):
        return False
    taps = [d.as_int() for d in c.shape("weight")[2:]]
    whole = all(c.w.scope.divisible(e, t or 1) for e, t in zip(tensor_type(x).dims[2:], taps, strict=True))
    plain = not any((*pad[0], *pad[1])) and all(d == 1 for d in dilation)
    return plain and whole and stride == taps and any(t != 1 for t in taps)


def windows(c: Call, x: SSAValue, weight: SSAValue, properties: dict[str, Attribute]) -> SSAValue:
    """`ait.conv` between permutes to channels-last and back; the pass `channels-last` moves these
    to the graph's edges.
    """
    rank = tensor_type(x).rank - 2
    last = [0, *range(2, rank + 2), 1]
    y = c.w.op(ConvOp, c.w.permute(x, last), c.w.permute(weight, last), properties=properties, regions=1)
    return c.w.permute(with_bias(c, y), [0, rank + 1, *range(1, rank + 1)])


def grouped_by_dim(
    c: Call, x: SSAValue, weight: SSAValue, stride: list[int], pad: tuple[list[int], list[int]], dilation: list[int]
) -> SSAValue:
    """A convolution whose number of groups is a dim, such as a weight for each image of a batch: one batched product
    over the groups, with the taps of each place side by side.
    """
    if c["transposed"] or "transpose" in str(c.node.target):
        raise NotSupported(
            "transposed convolutions with a dynamic number of groups are not supported; unroll the groups"
        )
    groups, (out, depth, *taps) = c["groups"], tensor_type(weight).dims
    images, channels, *sizes = tensor_type(x).dims
    channels_of_group, places = floordiv(out, groups), c.dims[-len(taps) :]
    if any((*pad[0], *pad[1])):
        padded = [size + n + m for size, n, m in zip(sizes, *pad, strict=True)]
        x = c.w.put(PadOp("constant", x, [const(n) for n in (0, 0, *pad[0])], (images, channels, *padded)))
    parts: list[SSAValue] = []
    for taken in itertools.product(*(range(as_int(t)) for t in taps)):
        part = x
        for i, (tap, place) in enumerate(zip(taken, places, strict=True)):
            part = c.w.full(cut(c, part, 2 + i, const(tap * dilation[i]), place, stride[i]))
        parts.append(c.w.reshape(part, (images, groups, depth, 1, product(places))))
    columns = c.w.reshape(c.w.concat(parts, 3), (images, groups, depth * len(parts), product(places)))
    rows = c.w.reshape(weight, (1, groups, channels_of_group, depth * len(parts)))
    y = c.w.op(BmmOp, rows, columns, properties={"layout": "rrr"}, regions=1)
    y = c.w.reshape(y, (images, out, *places))
    bias = c.optional("bias")
    return y if bias is None else c.w.add(y, c.w.reshape(bias, (out, *(1 for _ in places))))


def transposed(
    c: Call,
    x: SSAValue,
    weight: SSAValue,
    stride: list[int],
    pad: tuple[list[int], list[int]],
    dilation: list[int],
) -> SSAValue:
    """A transposed convolution; the weight [channels, out / groups, taps...] becomes [out, channels
    / groups, taps...].
    """
    groups = c["groups"]
    channels, out, *taps = tensor_type(weight).dims
    depth = as_int(channels) // groups
    parts = c.w.reshape(weight, (groups, depth, out, *taps))
    swapped = c.w.permute(parts, [0, 2, 1, *range(3, 3 + len(taps))])
    weight = c.w.reshape(swapped, (out * groups, depth, *taps))
    output_pad = each(c["output_padding"], len(taps))
    if any(n < 0 for n in (*pad[0], *output_pad)):
        raise NotSupported("negative padding of a transposed convolution is not supported")
    properties = window(stride, (*pad[0], *pad[1]), dilation, groups, True, output_pad)
    return windows(c, x, weight, properties)


def as_int(size: Expr) -> int:
    """A size as a number; `NotSupported` for a dynamic size."""
    if (found := size.as_int()) is None:
        raise NotSupported(f"found {size} channels, expected a number")
    return found


def with_bias(c: Call, y: SSAValue) -> SSAValue:
    bias = c.optional("bias")
    return y if bias is None else c.w.add(y, bias)


def patches(c: Call, x: SSAValue, weight: SSAValue) -> SSAValue:
    """The convolution as a matrix product with a row for each window."""
    out, depth, *taps = tensor_type(weight).dims
    batch, channels = tensor_type(x).dims[:2]
    rank, counts = len(taps), c.dims[-len(taps) :]
    # [batch, channels, n0, w0, n1, w1] to [batch, n0, n1, channels, w0, w1]
    cut = c.w.reshape(x, (batch, channels, *(d for pair in zip(counts, taps, strict=True) for d in pair)))
    order = [0, *(2 + 2 * i for i in range(rank)), 1, *(3 + 2 * i for i in range(rank))]
    rows = c.w.reshape(c.w.permute(cut, order), (batch, product(counts), product([channels, *taps])))
    y = with_bias(c, product_with_rows(c.w, rows, c.w.reshape(weight, (out, product([depth, *taps])))))
    return c.w.permute(c.w.reshape(y, (batch, *counts, out)), [0, rank + 1, *range(1, rank + 1)])


ROWS: dict[str, Row] = {
    f"aten.{name}": convolution
    for name in (
        "conv1d.default",
        "conv1d.padding",
        "conv2d.default",
        "conv2d.padding",
        "conv3d.default",
        "conv3d.padding",
        "conv_transpose1d.default",
        "conv_transpose2d.input",
        "conv_transpose3d.input",
        "convolution.default",
    )
}
