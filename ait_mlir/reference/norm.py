"""Reference semantics of softmax and norms."""

from __future__ import annotations

from functools import partial

import numpy as np

from ait_mlir.dialects.ait.norm import GroupNormOp, LayerNormOp, NormOp, RmsNormOp, SoftmaxOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference


def softmax(x: Array, axis: int) -> Array:
    """exp(x - max) / sum(exp(x - max)) along an axis; a row of only -inf gives NaN, an empty axis an empty result."""
    if x.shape[axis] == 0:
        return x.copy()
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def layer_norm(x: Array, axes: int, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) over the trailing `axes` dims, with the biased variance."""
    over = tuple(range(x.ndim - axes, x.ndim))
    if x.size == 0:
        return x.copy()
    centred = x - x.mean(axis=over, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=over, keepdims=True) + eps)


def rms_norm(x: Array, axes: int, eps: float, bounded: bool = False) -> Array:
    """x / sqrt(mean(x^2) + eps) over the trailing `axes` dims; x / sqrt(max(mean(x^2), eps)) if it is bounded."""
    if x.size == 0:
        return x.copy()
    over = tuple(range(x.ndim - axes, x.ndim))
    mean = np.square(x).mean(axis=over, keepdims=True)
    return x / np.sqrt(np.maximum(mean, eps) if bounded else mean + eps)


@reference(SoftmaxOp)
def _(op: SoftmaxOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (softmax(arrays[0], op.dim.value.data),)


@reference(LayerNormOp, RmsNormOp)
def _(norm: NormOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    bounded = isinstance(norm, RmsNormOp) and norm.bounded is not None
    normalise = layer_norm if isinstance(norm, LayerNormOp) else partial(rms_norm, bounded=bounded)
    arrays_of = dict(zip(norm.operands, arrays, strict=True))
    shape = ev.shape(norm.results[0].type)
    x, further = arrays[0], []
    if norm.prologue.blocks:
        x, *further = ev.run_region(norm.prologue, [arrays_of[v] for v in (norm.input, *norm.prologue_operands)])
    y = normalise(np.broadcast_to(x, shape), norm.axes.value.data, ev.number(norm.eps))
    if norm.scale is not None:
        y = y * arrays_of[norm.scale]
    if norm.bias is not None:
        y = y + arrays_of[norm.bias]
    if norm.epilogue.blocks:
        (y,) = ev.run_region(norm.epilogue, [y, *(arrays_of[v] for v in norm.epilogue_operands)])
        y = np.broadcast_to(y, shape)
    return (y, *(np.broadcast_to(value, shape) for value in further))


def group_norm(x: Array, axis: int, groups: int, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) over each of `groups` groups of neighbouring channels, which are dim `axis`."""
    if x.size == 0:
        return x.copy()
    first = np.moveaxis(x, axis, 1)
    rows = layer_norm(first.reshape(x.shape[0], groups, -1), 1, eps)
    return np.moveaxis(rows.reshape(first.shape), 1, axis)


@reference(GroupNormOp)
def _(norm: GroupNormOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    axis = norm.dim.value.data
    arrays_of = dict(zip(norm.operands, arrays, strict=True))
    x = arrays[0]
    y = group_norm(x, axis, norm.groups.value.data, ev.number(norm.eps))
    channels = [x.shape[axis] if a == axis else 1 for a in range(x.ndim)]
    if norm.scale is not None:
        y = y * arrays_of[norm.scale].reshape(channels)
    if norm.bias is not None:
        y = y + arrays_of[norm.bias].reshape(channels)
    if norm.epilogue.blocks:
        (y,) = ev.run_region(norm.epilogue, [y, *(arrays_of[v] for v in norm.epilogue_operands)])
        y = np.broadcast_to(y, x.shape)
    return (y,)
