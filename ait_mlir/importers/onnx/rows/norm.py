"""Softmax and norms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.compositions import norm
from ait_mlir.compositions.functions import power
from ait_mlir.compositions.reduction import log_softmax, vector_norm
from ait_mlir.dialects.ait.norm import GroupNormOp, LayerNormOp, NormOp, RmsNormOp, SoftmaxOp
from ait_mlir.dialects.ait.pool import PoolOp, pool_properties
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dims import product
from ait_mlir.importers.onnx.call import Call, Result, Row, as_number
from ait_mlir.importers.onnx.known import Known
from ait_mlir.importers.onnx.library import onnx


def along(build: Callable[[Call, SSAValue, int], SSAValue]) -> Row:
    """A row for a function along an axis; before opset 13, of matrices of the dims from the axis on."""

    def row(c: Call) -> SSAValue:
        x = c.tensor(0)
        dims = tensor_type(x).dims
        if c.version >= 13 or c.node.domain not in ("", "ai.onnx"):
            axis = c.axis(-1)
            whole = c.w.reshape(x, dims or [1])
            return c.w.reshape(build(c, whole, axis), dims)
        axis = c.axis(1)
        if axis == len(dims) - 1:
            return build(c, x, axis)
        flat = c.w.reshape(x, (product(dims[:axis]), product(dims[axis:])))
        return c.w.reshape(build(c, flat, 1), dims)

    return row


def softmax(c: Call, x: SSAValue, axis: int) -> SSAValue:
    return c.w.op(SoftmaxOp, x, properties={"dim": axis})


def log_of_softmax(c: Call, x: SSAValue, axis: int) -> SSAValue:
    element = tensor_type(x).element_type
    return c.w.cast(log_softmax(c.w, c.w.cast(x, _wide(element)), axis), element)


def _wide(element: Attribute) -> Attribute:
    return f64 if element == f64 else f32


def row_norm(op: type[NormOp]) -> Row:
    """A row for layer norm or RMS norm over the dims from an axis on, computed in `stash_type`."""

    def row(c: Call) -> Result:
        x = c.tensor(0)
        dims, element = tensor_type(x).dims, tensor_type(x).element_type
        axis, eps = c.axis(-1), c.attr("epsilon", 1e-5)
        count = len(dims) - axis
        parts = [c.optional(i) for i in (1, 2)]
        fits = all(p is None or tensor_type(p).dims == dims[axis:] for p in parts)
        same = all(p is None or tensor_type(p).element_type == element for p in parts)
        wide = element if same else _wide(element)
        inner = [p if p is None else c.w.cast(p, wide) for p in parts] if fits else [None, None]
        source = c.w.cast(x, wide)
        y = c.w.put(op(source, inner[0], inner[1], count, float(eps), result_types=[source.type]))
        if not fits:
            y = y if parts[0] is None else c.w.mul(y, c.w.cast(parts[0], wide))
            y = y if parts[1] is None else c.w.add(y, c.w.cast(parts[1], wide))
        y = c.w.cast(y, element)
        if op is RmsNormOp or not any(c.node.output[1:]):
            return y
        stash = c.element_attr("stash_type", onnx.TensorProto.FLOAT)
        axes = range(axis, len(dims))
        stored = c.w.cast(x, stash)
        mean = c.w.reduce("mean", stored, axes, True)
        rest = c.w.sub(stored, mean)
        var = c.w.reduce("mean", c.w.mul(rest, rest), axes, True)
        return y, mean, c.w.pointwise("rsqrt", c.w.add(var, eps))

    return row


def skip_norm(op: type[NormOp], biased: bool) -> Row:
    """A row for the norm of a sum of two tensors, of `com.microsoft`; the sum is the fourth result."""

    def row(c: Call) -> Result:
        x = c.w.add(c.tensor(0), c.tensor(1))
        bias_at = 4 if biased else 3
        if c.has(bias_at):
            x = c.w.add(x, c.tensor(bias_at))
        beta = c.optional(3) if biased else None
        eps = c.attr("epsilon", 1e-12)
        y = c.w.put(op(x, c.tensor(2), beta, 1, float(eps), result_types=[x.type]))
        return (y, None, None, x) if len(c.node.output) > 3 else y

    return row


def batch_norm(c: Call) -> Result:
    """Batch norm by learned statistics, or in training mode by those of the batch."""
    x, gamma, beta, mean, var = (c.tensor(i) for i in range(5))
    eps = c.attr("epsilon", 1e-5)
    if not c.attr("training_mode", 0):
        return norm.batch_norm(c.w, x, mean, var, gamma, beta, eps, axis=1)
    axes = [a for a in range(tensor_type(x).rank) if a != 1]
    learned = tensor_type(mean).element_type
    wide = c.w.cast(x, learned)
    now = c.w.reduce("mean", wide, axes)
    shape = [d if a == 1 else 1 for a, d in enumerate(tensor_type(x).dims)]
    rest = c.w.sub(wide, c.w.reshape(now, shape))
    spread = c.w.reduce("mean", c.w.mul(rest, rest), axes)
    y = norm.batch_norm(c.w, x, now, spread, gamma, beta, eps, axis=1)
    momentum = c.attr("momentum", 0.9)
    running = [c.w.add(c.w.mul(old, momentum), c.w.mul(new, 1 - momentum)) for old, new in ((mean, now), (var, spread))]
    return y, *running


def instance_norm(c: Call) -> SSAValue:
    """Each channel normalised, then scaled and shifted.

    Exporters write a group norm as an instance norm of a reshape to [batch, groups, ...], with scale 1 and bias 0. This
    form becomes a group norm again.
    """
    x, eps = c.tensor(0), float(c.attr("epsilon", 1e-5))
    dims = tensor_type(x).dims
    channels = as_number(dims[1])
    if not (_all_are(c, 1, 1) and _all_are(c, 2, 0)):
        return c.w.put(GroupNormOp(x, c.tensor(1), c.tensor(2), 1, channels, eps))
    if isinstance(op := x.owner, ReshapeOp):
        own = tensor_type(op.input).dims
        if len(own) > 1 and c.w.scope.equal(own[0], dims[0]) and c.w.scope.divisible(own[1], channels):
            x = op.input
    return c.w.reshape(c.w.put(GroupNormOp(x, None, None, 1, channels, eps)), dims)


def _all_are(c: Call, index: int, number: float) -> bool:
    """Whether all elements of an input are known to be a number."""
    value = c.value(index)
    return isinstance(value, Known) and not value.has_dims and bool(np.all(value.array == number))


def group_norm(c: Call) -> SSAValue:
    """Each group of channels normalised, then each channel scaled and shifted; before opset 21, each group."""
    x, scale, bias = c.tensor(0), c.tensor(1), c.tensor(2)
    groups, channels = c.attr("num_groups", 1), as_number(tensor_type(x).dims[1])
    if tensor_type(scale).dims[0].as_int() != channels:
        each = channels // groups
        scale, bias = (
            c.w.reshape(c.w.expand(c.w.reshape(v, (groups, 1)), (groups, each)), (channels,)) for v in (scale, bias)
        )
    return c.w.put(GroupNormOp(x, scale, bias, 1, groups, float(c.attr("epsilon", 1e-5))))


def local_response_norm(c: Call) -> SSAValue:
    """x / (bias + alpha / size * sum of squares of the neighbouring channels) ** beta (AlexNet)."""
    x, size = c.tensor(0), c.attr("size", 1)
    dims = tensor_type(x).dims
    batch, channels, places = dims[0], dims[1], product(dims[2:])
    squares = c.w.reshape(c.w.mul(x, x), (batch, channels, places))  # the channels are the dim of the windows
    before, behind = (size - 1) // 2, size - 1 - (size - 1) // 2
    properties = pool_properties("mean", [size], [1], [before, behind], divisor=1)
    op = PoolOp.create(operands=[squares], result_types=[squares.type], properties=properties)
    total = c.w.reshape(c.w.put(op), dims)
    scaled = c.w.add(c.w.mul(total, c.attr("alpha", 1e-4) / size), c.attr("bias", 1.0))
    return c.w.div(x, power(c.w, scaled, c.attr("beta", 0.75)))


def lp_norm(c: Call) -> SSAValue:
    """x divided by its norm along an axis; 0 where the norm is 0."""
    x, axis = c.tensor(0), c.axis(-1)
    length = vector_norm(c.w, x, [axis], c.attr("p", 2), keep=True)
    zero = c.w.compare("eq", length, 0)
    return c.w.where(zero, 0.0, c.w.div(x, length))


def mean_variance_norm(c: Call) -> SSAValue:
    """(x - mean) / (deviation + 1e-9) over some axes."""
    x = c.tensor(0)
    axes = [c.placed(a, c.rank(), "axes") for a in c.attr("axes", [0, 2, 3])]
    rest = c.w.sub(x, c.w.reduce("mean", x, axes, True))
    deviation = c.w.pointwise("sqrt", c.w.reduce("mean", c.w.mul(rest, rest), axes, True))
    return c.w.div(rest, c.w.add(deviation, 1e-9))


ROWS: dict[str, Row] = {
    "Softmax": along(softmax),
    "LogSoftmax": along(log_of_softmax),
    "LayerNormalization": row_norm(LayerNormOp),
    "RMSNormalization SimplifiedLayerNormalization": row_norm(RmsNormOp),
    "com.microsoft.SimplifiedLayerNormalization": row_norm(RmsNormOp),
    "com.microsoft.SkipLayerNormalization": skip_norm(LayerNormOp, biased=True),
    "com.microsoft.SkipSimplifiedLayerNormalization": skip_norm(RmsNormOp, biased=False),
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
    "LRN": local_response_norm,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance_norm,
}
