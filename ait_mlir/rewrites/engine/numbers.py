"""Numbers in IR: the stored value of a splat constant, and which element types can hold the values of another."""

from __future__ import annotations

import math
import struct
from typing import Any, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
)
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import Float8, constant_type, i4, ui8
from ait_mlir.dialects.ait.numbers import Number
from ait_mlir.dialects.ait.types import TensorType


def element_type_of(value: SSAValue) -> Attribute:
    """The element type of a tensor, or the type of a scalar."""
    return value.type.element_type if isinstance(value.type, TensorType) else value.type


def splat(value: SSAValue) -> Number | None:
    """The number in all elements of a constant, rounded to f32 if its elements are f16, bf16 or f32, to other element
    types as they are; None for any other value.
    """
    owner = value.owner
    if not isinstance(owner, ConstantOp):
        return None
    number = owner.splat()
    return None if number is None else stored(number, constant_type(element_type_of(value)))


def stored(number: Number, element_type: Attribute) -> Number:
    """The number rounded to this element type: floats round to nearest even and overflow to infinity."""
    if isinstance(element_type, IntegerType):
        return number
    number = float(number)
    if isinstance(element_type, BFloat16Type):
        return _bfloat16(number)
    if isinstance(element_type, Float8E8M0FNUType):
        return _power_of_2(number)
    if isinstance(element_type, Float8):
        return element_type.decode_bits(element_type.encode_bits(number))
    form = "e" if isinstance(element_type, Float16Type) else "f" if isinstance(element_type, Float32Type) else "d"
    try:
        return struct.unpack(form, struct.pack(form, number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _bfloat16(number: float) -> float:
    if number != number or number in (float("inf"), float("-inf")):
        return number
    try:
        (bits,) = struct.unpack("I", struct.pack("f", number))
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    bits += 0x7FFF + ((bits >> 16) & 1)
    return struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0]


def _power_of_2(number: float) -> float:
    """The nearest power of 2, of two the larger one, at least 2^-127; NaN for others and above the largest one."""
    if not 0 < number < float.fromhex("0x1.8p127"):
        return math.nan
    mantissa, exponent = math.frexp(number)
    if exponent < -125:
        return math.ldexp(1.0, -126 if number > math.ldexp(1.0, -127) else -127)
    return math.ldexp(1.0, exponent if mantissa >= 0.75 else exponent - 1)


# Bits of the significand with the hidden one, and bits of the exponent.
_FLOATS: dict[type[Attribute], tuple[int, int]] = {
    Float16Type: (11, 5),
    BFloat16Type: (8, 8),
    Float32Type: (24, 8),
    Float64Type: (53, 11),
    Float8E4M3FNType: (4, 4),
    Float8E5M2Type: (3, 5),
    Float8E8M0FNUType: (1, 8),
}


def represents(wide: Attribute, narrow: Attribute) -> bool:
    """Whether `wide` holds every value of `narrow` exactly."""
    if wide == narrow:
        return True
    if type(wide) in _FLOATS:
        significand, exponent = _FLOATS[type(wide)]
        if type(narrow) in _FLOATS:
            s, e = _FLOATS[type(narrow)]
            return s <= significand and e <= exponent
        bits = _bits(narrow)
        return 0 < bits <= min(significand, 1 << (exponent - 1)) and not isinstance(wide, Float8E8M0FNUType)
    # a wider type holds every narrower type, but that an unsigned one holds no signed one: i4 is narrower than ui8
    return 0 < _bits(narrow) < _bits(wide) and not (wide == ui8 and narrow == i4)


def _bits(element_type: Attribute) -> int:
    """The width of an integer type; 0 for any other."""
    if not isinstance(element_type, IntegerType):
        return 0
    width: int = cast(Any, element_type).width.data
    return width
