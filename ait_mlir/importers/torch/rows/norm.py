"""Softmax and norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions import norm
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.norm import GroupNormOp, LayerNormOp, RmsNormOp, SoftmaxOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import product
from ait_mlir.importers.torch.call import Call, NotSupported, Row, element_type
from ait_mlir.importers.torch.library import torch

TRAINING = "batch norm by the statistics of the batch is for training; call model.eval() first"


Norm = Callable[[Call], SSAValue]


def in_one_type(norm_of: Norm) -> Norm:
    """A norm whose operands may have several types, as under autocast: it computes in f32 and rounds the result."""

    def mixed(c: Call) -> SSAValue:
        given = {name: c.tensor(name) for name in ("input", "weight", "bias") if c.arguments.get(name) is not None}
        if len({tensor_type(value).element_type for value in given.values()}) == 1:
            return norm_of(c)
        wide = {name: c.w.cast(value, f32) for name, value in given.items()}
        meant: Any = c.node.meta["val"]
        first = meant if hasattr(meant, "dtype") else meant[0]  # then come mean and deviation
        normed = norm_of(replace(c, arguments={**c.arguments, **wide}))
        return c.w.cast(normed, element_type(first.dtype))

    return mixed


def softmax(c: Call) -> Value:
    """The softmax along one dim, in the result's type; a scalar counts as one element."""
    x = c.w.reshape(c.w.cast(c.tensor("self"), c.element), c.dims or [1])
    return c.w.reshape(c.w.op(SoftmaxOp, x, properties={"dim": c.axis("dim")}), c.dims)


@in_one_type
def normalised(c: Call) -> SSAValue:
    """Layer norm over the trailing `normalized_shape`, in the input's type."""
    scale, bias = c.optional("weight"), c.optional("bias")
    x = c.tensor("input")
    return c.w.put(LayerNormOp(x, scale, bias, len(c["normalized_shape"]), float(c["eps"]), result_types=[x.type]))


def layer_norm(c: Call) -> Value:
    return normalised(c)


def native_layer_norm(c: Call) -> Sequence[Value]:
    """Only the normalised tensor: mean and deviation are for training."""
    return [normalised(c)]


@in_one_type
def rms_norm(c: Call) -> SSAValue:
    """RMS norm over the trailing `normalized_shape`; the default of `eps` is the machine epsilon of the type."""
    x = c.tensor("input")
    is_wide = tensor_type(x).element_type == f32  # also where `in_one_type` has widened x
    eps = torch.finfo(torch.float32 if is_wide else c.node.meta["val"].dtype).eps if c["eps"] is None else c["eps"]
    op = RmsNormOp(x, c.optional("weight"), None, len(c["normalized_shape"]), float(eps), result_types=[x.type])
    return c.w.put(op)


def batch_norm(c: Call) -> SSAValue:
    """Batch norm with the learned statistics; without them, with the statistics of a batch of 1."""
    if c["running_mean"] is None:
        return norm_of_batch(c)
    if c["training"]:
        raise NotSupported(TRAINING)
    eps = c["eps"] if c["epsilon"] is None else c["epsilon"]
    x, mean, var = (c.tensor(name) for name in ("input", "running_mean", "running_var"))
    if len(c.shape("input")) < 2:
        raise NotSupported("batch norm of a tensor without a dim of channels; expected at least two dims")
    return norm.batch_norm(c.w, x, mean, var, c.optional("weight"), c.optional("bias"), float(eps), axis=1)


def native_batch_norm(c: Call) -> Sequence[Value]:
    """Only the normalised tensor: mean and deviation of the batch are for training."""
    return [batch_norm(c)]


@in_one_type
def group_norm(c: Call) -> SSAValue:
    """Group norm: each of `num_groups` groups of channels is normalised, then each channel is scaled and shifted."""
    x = c.tensor("input")
    groups = c["num_groups"] if "num_groups" in c.arguments else c["group"]
    return c.w.put(GroupNormOp(x, c.optional("weight"), c.optional("bias"), 1, int(groups), float(c["eps"])))


def instance_norm(c: Call) -> SSAValue:
    """Instance norm: each channel is normalised, then scaled and shifted."""
    if not c["use_input_stats"]:
        return batch_norm(c)
    return norm_of_rows(c) if c.shape("input")[1].as_int() is None else norm_of_channels(c)


@in_one_type
def norm_of_channels(c: Call) -> SSAValue:
    """Group norm with one channel in each group."""
    x, channels = c.tensor("input"), c.shape("input")[1].as_int()
    assert channels is not None
    return c.w.put(GroupNormOp(x, c.optional("weight"), c.optional("bias"), 1, channels, float(c["eps"])))


def norm_of_batch(c: Call) -> SSAValue:
    """Batch norm with the statistics of a batch of 1, the form of traced instance norms and of standardized weights."""
    if c.shape("input")[0].as_int() != 1:
        raise NotSupported(TRAINING)
    return norm_of_rows(c)


@in_one_type
def norm_of_rows(c: Call) -> SSAValue:
    """A norm of each channel of each element of the batch, scaled and shifted."""
    x = c.tensor("input")
    batch, channels, *places = tensor_type(x).dims
    lead = [channels] if batch.as_int() == 1 else [batch, channels]
    rows = c.w.reshape(x, [*lead, product(places)])
    y = c.w.put(LayerNormOp(rows, None, None, 1, float(c["eps"]), result_types=[rows.type]))
    for op, given in ((ait.MulOp, c.optional("weight")), (ait.AddOp, c.optional("bias"))):
        if given is not None:
            y = c.w.op(op, y, c.w.reshape(given, [channels, 1]))
    return c.w.reshape(y, tensor_type(x).dims)


ROWS: dict[str, Row] = {
    "aten.batch_norm.default": batch_norm,
    "aten._native_batch_norm_legit_no_training.default aten._native_batch_norm_legit.default": native_batch_norm,
    "aten.native_batch_norm.default aten.cudnn_batch_norm.default aten.miopen_batch_norm.default": native_batch_norm,
    "aten._batch_norm_impl_index.default": native_batch_norm,
    "aten.softmax.int aten._softmax.default": softmax,
    "aten.layer_norm.default": layer_norm,
    "aten.native_layer_norm.default": native_layer_norm,
    "aten.rms_norm.default": rms_norm,
    "aten.group_norm.default": group_norm,
    "aten.native_group_norm.default": lambda c: [group_norm(c)],
    "aten.instance_norm.default": instance_norm,
    "aten._native_batch_norm_legit.no_stats": lambda c: [norm_of_batch(c)],
}
