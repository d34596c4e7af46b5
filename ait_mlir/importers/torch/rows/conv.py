"""Convolutions, and those whose number of groups is a dim."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions import conv as composed
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, floordiv, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.rows.common import each
from ait_mlir.importers.torch.rows.view import cut


def convolution(c: Call) -> Value:
    """The convolution of x [batch, channels, sizes...] (or without a batch) and a weight [out, channels / groups,
    taps...].
    """
    x, weight = c.tensor("input"), c.tensor("weight")
    composed.check_rank(c.w, weight)
    taps = tensor_type(weight).dims[2:]
    rank = len(taps)
    single = tensor_type(x).rank == rank + 1
    if single:
        x = c.w.reshape(x, (1, *tensor_type(x).dims))
    stride, dilation = (each(c[name], rank) for name in ("stride", "dilation"))
    pad, bias = pads(c["padding"], taps, dilation, rank), c.optional("bias")
    tf32 = may_round(c, x, weight)
    if isinstance(c["groups"], Expr):
        y = grouped_by_dim(c, x, weight, stride, pad, dilation, tf32)
    elif c["transposed"] or "transpose" in str(c.node.target):
        output_pad = each(c["output_padding"], rank)
        y = composed.transposed(c.w, x, weight, bias, stride, pad, dilation, c["groups"], output_pad, tf32)
    else:
        y = composed.convolution(c.w, x, weight, bias, stride, pad, dilation, c["groups"], tf32)
    return c.w.reshape(y, c.dims) if single else y


def may_round(c: Call, x: SSAValue, weight: SSAValue) -> bool:
    """Whether PyTorch's convolutions of f32 on a CUDA card may round their operands to TF32, as they do by default.
    PyTorch computes depthwise ones exactly.
    """
    if c["groups"] != 1 and tensor_type(weight).dims[1].as_int() == 1:
        return False
    return isinstance(tensor_type(x).element_type, Float32Type) and rounds_convolutions()


def rounds_convolutions() -> bool:
    """PyTorch's setting for convolutions: `torch.backends.cudnn.conv.fp32_precision`, or the older
    `torch.backends.cudnn.allow_tf32`.
    """
    cudnn = torch.backends.cudnn
    found = getattr(getattr(cudnn, "conv", None), "fp32_precision", None)
    return found == "tf32" if found in ("tf32", "ieee") else bool(cudnn.allow_tf32)


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


def grouped_by_dim(
    c: Call,
    x: SSAValue,
    weight: SSAValue,
    stride: list[int],
    pad: tuple[list[int], list[int]],
    dilation: list[int],
    tf32: bool,
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
    y = c.w.op(BmmOp, rows, columns, properties={"layout": "rrr", "tf32": tf32}, regions=1)
    y = c.w.reshape(y, (images, out, *places))
    bias = c.optional("bias")
    return y if bias is None else c.w.add(y, c.w.reshape(bias, (out, *(1 for _ in places))))


def as_int(size: Expr) -> int:
    """A size as a number; `NotSupported` for a dynamic size."""
    if (found := size.as_int()) is None:
        raise NotSupported(f"found {size} channels, expected a number")
    return found


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
