"""Convolutions: of windows that lie side by side as a matrix product, others as they are, channels last."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.conv import Conv2dOp, window
from ait_mlir.dialects.ait.elementwise import AddOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.known import Value
from ait_mlir.importers.torch.rows.common import each
from ait_mlir.importers.torch.rows.contraction import gemm


def convolution(c: Call) -> Value:
    """x [batch, channels, width] or [batch, channels, height, width] with a weight [out, channels / groups, ...]."""
    weight = tensor_type(c.tensor("weight")).dims
    rank = len(weight) - 2
    if rank not in (1, 2) or len(c.shape("input")) != rank + 2:
        raise NotSupported("convolutions are supported over one and two dims, of inputs with a batch")
    if c["transposed"] or any(n != 0 for n in c["output_padding"] or ()):
        raise NotSupported("transposed convolutions are not supported")
    stride, dilation = (each(c[name], rank) for name in ("stride", "dilation"))
    pad = pads(c["padding"], weight[2:], dilation, rank)
    if are_patches(c, stride, pad, dilation):
        return patches(c)
    return windows(c, stride, pad, dilation)


def pads(given: object, taps: Sequence[Expr], dilation: Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """Zeros before and behind each dim. `same` is as many as keep the size, the odd one behind; `valid` is none."""
    if given == "valid":
        return [0] * rank, [0] * rank
    if given == "same":
        both = [d * ((t.as_int() or 1) - 1) for d, t in zip(dilation, taps, strict=True)]
        return [n // 2 for n in both], [n - n // 2 for n in both]
    return each(given, rank), each(given, rank)


def are_patches(c: Call, stride: list[int], pad: tuple[list[int], list[int]], dilation: list[int]) -> bool:
    """Whether the windows lie side by side and cover the input."""
    taps = [d.as_int() for d in c.shape("weight")[2:]]
    whole = all(c.w.scope.divisible(e, t or 1) for e, t in zip(c.shape("input")[2:], taps, strict=True))
    plain = not any((*pad[0], *pad[1])) and all(d == 1 for d in dilation) and c["groups"] == 1
    return plain and whole and stride == taps


def windows(c: Call, stride: list[int], pad: tuple[list[int], list[int]], dilation: list[int]) -> Value:
    """Channels go last and back; views cancel these permutes between two convolutions."""
    x, weight = c.tensor("input"), c.tensor("weight")
    flat = tensor_type(x).rank == 3
    if flat:  # one row
        x, weight = (c.w.reshape(v, (*tensor_type(v).dims[:2], 1, tensor_type(v).dims[2])) for v in (x, weight))
        stride, dilation, pad = [1, *stride], [1, *dilation], ([0, *pad[0]], [0, *pad[1]])
    properties = window(stride, (*pad[0], *pad[1]), dilation, c["groups"])
    last = [0, 2, 3, 1]
    y = c.w.op(Conv2dOp, c.w.permute(x, last), c.w.permute(weight, last), properties=properties, regions=1)
    y = c.w.permute(with_bias(c, y), [0, 3, 1, 2])
    return c.w.reshape(y, c.dims) if flat else y


def with_bias(c: Call, y: SSAValue) -> SSAValue:
    bias = c.optional("bias")
    return y if bias is None else c.w.op(AddOp, y, bias)


def patches(c: Call) -> Value:
    """Each window is a row of a matrix product."""
    x, weight = c.tensor("input"), c.tensor("weight")
    out, depth, *taps = tensor_type(weight).dims
    batch, channels, *_ = tensor_type(x).dims
    rank, counts = len(taps), c.dims[2:]
    # [batch, channels, n0, w0, n1, w1] to [batch, n0, n1, channels, w0, w1]
    cut = c.w.reshape(x, (batch, channels, *(d for pair in zip(counts, taps, strict=True) for d in pair)))
    order = [0, *(2 + 2 * i for i in range(rank)), 1, *(3 + 2 * i for i in range(rank))]
    rows = c.w.reshape(c.w.permute(cut, order), (batch, product(counts), product([channels, *taps])))
    y = with_bias(c, gemm(c, "rcr", rows, c.w.reshape(weight, (out, product([depth, *taps])))))
    return c.w.reshape(c.w.permute(y, [0, 2, 1]), c.dims)


ROWS: dict[str, Row] = {
    f"aten.{name}": convolution
    for name in ("conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding", "convolution.default")
}
