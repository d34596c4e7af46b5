"""Numbers that the caller passes to a run: `eps bits(e)` is the f32 whose bits are the dim expression `e`.

The bits of positive numbers are integers from 1 on, so a number is passed as a dim. Code is generated once and is valid
for all numbers.
"""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dims import Dim

LEAST, MOST = 1, 0x7F7FFFFF
"""The bits of the positive finite numbers of f32."""


def bits_of(number: float) -> int | None:
    """The bits of a number as f32; None unless it is positive and finite in f32."""
    try:
        bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    except OverflowError:
        return None
    return bits if LEAST <= bits <= MOST else None


def from_bits(bits: int) -> float:
    """The f32 number with these bits."""
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def number_dim(name: str, usual: float) -> Dim:
    """A given dim for the bits of a positive number, with the number `usual` as its hint."""
    bits = bits_of(usual)
    assert bits is not None, "a positive number"
    return Dim(name, LEAST, MOST, (bits,), is_given=True)


def known_number(attribute: Attribute) -> float | None:
    """The number of a property; None if it depends on dims of a run. Raises `VerifyException` for bits of no number."""
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    assert isinstance(attribute, ShapeAttr), "a number or its bits"
    if len(attribute.data) != 1:
        raise VerifyException(f"the bits of a number are one dim expression, got {len(attribute.data)}")
    bits = attribute.data[0].as_int()
    if bits is not None and not 0 <= bits <= MOST:
        raise VerifyException(f"bits({bits}) are not those of a number of f32 that is at least 0: they are 0 to {MOST}")
    return None if bits is None else from_bits(bits)
