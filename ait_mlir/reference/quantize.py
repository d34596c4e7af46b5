"""Reference semantics of numbers with a scale: a quantised number is held in its own type, its value in float64."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute

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


def round_quotient(quotient: Array, source: Attribute, target: Attribute, zero: Array | float = 0.0) -> Array:
    """The stored number of a quotient, whose values had the type `source`, plus the zero point of integers."""
    if is_float(target):
        largest = BY_IR[target].largest
        return cast_values(np.clip(quotient, -largest, largest), source, target)
    return cast_values(np.rint(quotient) + zero, source, target)


@reference(QuantizeOp)
def _(op: QuantizeOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, scale = arrays[0], spread(op, arrays[1], ev)
    zero = 0.0 if len(arrays) == 2 else spread(op, arrays[2], ev)
    return (round_quotient(x / scale, tensor_type(op.input).element_type, tensor_type(op.output).element_type, zero),)


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
