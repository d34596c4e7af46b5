"""Reference semantics of numbers with a scale: a quantised number is held in its own type, its value in float64."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.dtypes import BY_IR, is_float, ui4
from ait_mlir.dialects.ait.quantize import DequantizeOp, QuantizeOp, ScaledOp, UnpackOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference, value_dtype
from ait_mlir.reference.elementwise import cast_values


def spread(op: ScaledOp, array: Array, ev: Evaluation) -> Array:
    """The scale or the zero point of each element, in float64."""
    shape = ev.shape(op.input.type)
    array = array.astype(np.float64)
    if (block := op.block()) is not None:
        for axis, (size, step) in enumerate(zip(shape, (e.evaluate(ev.dims) for e in block), strict=True)):
            array = np.take(array, np.arange(size) // step, axis)
    return np.broadcast_to(array, shape)


@reference(QuantizeOp)
def _(op: QuantizeOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, scale = arrays[0], spread(op, arrays[1], ev)
    target = tensor_type(op.output).element_type
    quotient = x / scale
    if is_float(target):
        largest = BY_IR[target].largest
        return (cast_values(np.clip(quotient, -largest, largest), tensor_type(op.input).element_type, target),)
    whole = np.rint(quotient)
    whole = whole if len(arrays) == 2 else whole + spread(op, arrays[2], ev)
    return (cast_values(whole, tensor_type(op.input).element_type, target),)


@reference(DequantizeOp)
def _(op: DequantizeOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x = arrays[0].astype(np.float64)
    x = x if len(arrays) == 2 else x - spread(op, arrays[2], ev)
    return (x * spread(op, arrays[1], ev),)


@reference(UnpackOp)
def _(op: UnpackOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    (x,) = arrays
    element = tensor_type(op.output).element_type
    pairs = np.stack([x & 15, x >> 4], -1).reshape(*x.shape[:-1], 2 * x.shape[-1])
    pairs = pairs[..., : ev.shape(op.output.type)[-1]].astype(np.int8)
    return ((pairs if element == ui4 else (pairs ^ 8) - 8).astype(value_dtype(element)),)
