"""Softmax and norms."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.norm import LayerNormOp, RmsNormOp, SoftmaxOp
from ait_mlir.importers.torch.call import Call, Row
from ait_mlir.importers.torch.known import Value
from ait_mlir.importers.torch.library import torch


def softmax(c: Call) -> Value:
    """Along one dim, in the type asked for."""
    x = c.w.cast(c.tensor("self"), c.element)
    return c.w.op(SoftmaxOp, x, properties={"dim": IntegerAttr(c.axis("dim"), i64)})


def normalised(c: Call) -> SSAValue:
    """Layer norm over the trailing `normalized_shape`, in the input's type."""
    scale, bias = c.optional("weight"), c.optional("bias")
    x = c.tensor("input")
    return c.w.add(LayerNormOp(x, scale, bias, len(c["normalized_shape"]), float(c["eps"]), result_types=[x.type]))


def layer_norm(c: Call) -> Value:
    return normalised(c)


def native_layer_norm(c: Call) -> Sequence[Value]:
    """The result alone: mean and deviation are for training."""
    return [normalised(c)]


def rms_norm(c: Call) -> Value:
    """Over the trailing `normalized_shape`; without `eps`, PyTorch takes that of the type."""
    x = c.tensor("input")
    eps = torch.finfo(c.node.meta["val"].dtype).eps if c["eps"] is None else c["eps"]
    op = RmsNormOp(x, c.optional("weight"), None, len(c["normalized_shape"]), float(eps), result_types=[x.type])
    return c.w.add(op)


ROWS: dict[str, Row] = {
    "aten.softmax.int": softmax,
    "aten._softmax.default": softmax,
    "aten.layer_norm.default": layer_norm,
    "aten.native_layer_norm.default": native_layer_norm,
    "aten.rms_norm.default": rms_norm,
}
