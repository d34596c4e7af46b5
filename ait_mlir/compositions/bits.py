"""The memory of a tensor read as elements of another type."""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import Shape, tensor_type

SIGN, MAGNITUDE = 0x8000, 0x7FFF
INFINITY, INFINITY_32 = 0x7C00, 0x7F800000
LEAST, LEAST_32 = 0x400, 0x38800000
"""The bits of infinity, and of the least normal number of f16, in f16 and in f32."""
DIGITS, BIAS = 13, 0x38000000
"""The digits that f32 has beyond f16; the difference of the exponents' biases, in place."""
STEP = 2.0**-24
"""The least number of f16."""


def reinterpreted(w: Writer, x: SSAValue, element: Attribute, dims: Shape) -> SSAValue:
    """The bytes of x as elements of another type; the last of the new `dims` is larger or smaller accordingly."""
    before, after = BY_IR[tensor_type(x).element_type].bytes, BY_IR[element].bytes
    bits = _bits(w, x)
    if before > after:
        parts = [w.pointwise("shift_right", bits, 8 * after * i) for i in range(before // after)]
        parts = [w.cast(_low(w, part, after), i32) for part in parts]
        shape = (*tensor_type(x).dims, 1)
        bits = w.concat([w.reshape(part, shape) for part in parts], len(shape) - 1)
    elif before < after:
        wide, count, outer = i64 if after == 8 else i32, after // before, dims
        split = _low(w, w.cast(w.reshape(bits, (*outer, count)), wide), before)
        axis = len(outer)
        found: SSAValue | None = None
        for i in range(count):
            part = w.pointwise("shift_left", w.reshape(w.slice(split, axis, i, 1), outer), 8 * before * i)
            found = part if found is None else w.pointwise("bit_or", found, part)
        assert found is not None
        bits = found
    return w.reshape(_of_bits(w, bits, element), dims)


def _low(w: Writer, bits: SSAValue, count: int) -> SSAValue:
    """The low bytes of integers."""
    width = BY_IR[tensor_type(bits).element_type].bytes
    return bits if count == width else w.pointwise("bit_and", bits, (1 << 8 * count) - 1)


def _bits(w: Writer, x: SSAValue) -> SSAValue:
    """The bits of each element, as i64 for types of 8 bytes and as i32 for others."""
    element = tensor_type(x).element_type
    if element in (f32, f64):
        return w.pointwise("bitcast", x)
    if element == bf16:
        return w.pointwise("shift_right", w.pointwise("bitcast", w.cast(x, f32)), 16)
    if element == f16:
        return _bits_of_half(w, w.cast(x, f32))
    return x if element == i64 else w.cast(x, i32)


def _of_bits(w: Writer, bits: SSAValue, element: Attribute) -> SSAValue:
    """The elements that have these bits."""
    if element in (f32, f64):
        return w.pointwise("bitcast", w.cast(bits, i32 if element == f32 else i64))
    if element == bf16:
        return w.cast(w.pointwise("bitcast", w.pointwise("shift_left", bits, 16)), element)
    if element == f16:
        return w.cast(_half_of_bits(w, bits), element)
    return w.compare("ne", bits, 0) if element == i1 else w.cast(bits, element)


def _bits_of_half(w: Writer, x: SSAValue) -> SSAValue:
    """The f16 bit patterns of f16 numbers that are stored as f32."""
    bits = w.pointwise("bitcast", x)
    size = w.pointwise("bit_and", bits, 0x7FFFFFFF)
    moved = w.pointwise("shift_right", size, DIGITS)
    normal = w.sub(moved, BIAS >> DIGITS)
    tiny = w.cast(w.mul(w.pointwise("abs", x), 1 / STEP), i32)
    large = w.pointwise("bit_or", w.pointwise("bit_and", moved, LEAST - 1), INFINITY)
    found = w.where(w.compare("ge", size, INFINITY_32), large, w.where(w.compare("lt", size, LEAST_32), tiny, normal))
    sign = w.pointwise("bit_and", w.pointwise("shift_right", bits, 16), SIGN)
    return w.pointwise("bit_or", found, sign)


def _half_of_bits(w: Writer, bits: SSAValue) -> SSAValue:
    """The f16 numbers with these bit patterns, as f32."""
    size = w.pointwise("bit_and", bits, MAGNITUDE)
    moved = w.pointwise("shift_left", size, DIGITS)
    tiny = w.pointwise("bitcast", w.mul(w.cast(size, f32), STEP))
    large = w.pointwise("bit_or", moved, INFINITY_32)
    found = w.where(w.compare("lt", size, LEAST), tiny, w.add(moved, BIAS))
    found = w.where(w.compare("ge", size, INFINITY), large, found)
    sign = w.pointwise("shift_left", w.pointwise("bit_and", bits, SIGN), 16)
    return w.pointwise("bitcast", w.pointwise("bit_or", found, sign))
