"""Arithmetic of integers of 64 bits without a sign, whose bits an i64 holds."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.types import tensor_type

HIGHEST = -(1 << 63)
"""The highest bit."""
LOWER = (1 << 63) - 1
"""All other bits."""


def _half(w: Writer, x: SSAValue) -> SSAValue:
    """x / 2, which is not negative as a signed number."""
    return w.pointwise("bit_and", w.pointwise("shift_right", x, 1), LOWER)


def _at_least(w: Writer, a: SSAValue, b: SSAValue) -> SSAValue:
    """Whether a >= b."""
    return w.compare("ge", w.pointwise("bit_xor", a, HIGHEST), w.pointwise("bit_xor", b, HIGHEST))


def divided(w: Writer, a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b, rounded down: twice the quotient of a / 2, and 1 more if the rest is not below b (Warren, Hacker's
    Delight, 9-3).
    """
    large = w.compare("lt", b, 0)
    divisor = w.where(large, 1, b)
    quotient = w.pointwise("shift_left", w.div(_half(w, a), divisor), 1)
    rest = w.sub(a, w.mul(quotient, divisor))
    small = w.add(quotient, w.cast(_at_least(w, rest, divisor), i64))
    return w.where(large, w.cast(_at_least(w, a, b), i64), small)


def remainder(w: Writer, a: SSAValue, b: SSAValue) -> SSAValue:
    """The rest of a / b."""
    return w.sub(a, w.mul(divided(w, a, b), b))


def shifted_right(w: Writer, x: SSAValue, count: SSAValue) -> SSAValue:
    """The bits of x moved down, with zeros from above."""
    moved = w.pointwise("shift_right", _half(w, x), w.sub(w.maximum(count, 1), 1))
    return w.where(w.compare("eq", count, 0), x, moved)


def to_float(w: Writer, x: SSAValue, element: Attribute) -> SSAValue:
    """Integers as floats, rounded once.

    A large number is halved first; the last bit of the half is set if the number was odd, so that the rounding is the
    same.
    """
    half = w.pointwise("bit_or", _half(w, x), w.pointwise("bit_and", x, 1))
    return w.where(w.compare("lt", x, 0), w.mul(w.cast(half, element), 2.0), w.cast(x, element))


def from_float(w: Writer, x: SSAValue) -> SSAValue:
    """Floats rounded towards zero, as bits of an i64."""
    element = tensor_type(x).element_type
    wide = x if element == f64 else w.cast(x, f32)
    large = w.compare("ge", wide, 2.0**63)
    upper = w.pointwise("bit_xor", w.cast(w.sub(wide, 2.0**63), i64), HIGHEST)
    return w.where(large, upper, w.cast(wide, i64))


__all__ = ["divided", "from_float", "remainder", "shifted_right", "to_float"]
