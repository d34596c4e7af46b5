"""Numbers that a run is given: properties such as `eps bits(e)`, the f32 whose bits are a dim expression.

The bits of positive numbers are integers from 1 on, so a number is passed as a dim is. Code with such a number is made
once and is valid for all of them.
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
    """The bits of a number as f32; None unless it is positive and finite there."""
    try:
        bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    except OverflowError:
        return None
    return bits if LEAST <= bits <= MOST else None


def from_bits(bits: int) -> float:
    """The number of f32 with these bits."""
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def number_dim(name: str, usual: float) -> Dim:
    """The given dim of the bits of a positive number, which is usually this one."""
    bits = bits_of(usual)
    assert bits is not None, "a positive number"
    return Dim(name, LEAST, MOST, (bits,), is_given=True)


def known_number(attribute: Attribute) -> float | None:
    """The number of a property; None if only a run knows it."""
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    assert isinstance(attribute, ShapeAttr), "a number or its bits"
    bits = attribute.data[0].as_int()
    if bits is not None and not 0 <= bits <= MOST:
        raise VerifyException(f"bits({bits}) are not those of a number of f32 that is at least 0: they are 0 to {MOST}")
    return None if bits is None else from_bits(bits)
