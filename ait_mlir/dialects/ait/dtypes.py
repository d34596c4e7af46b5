"""Element types of the IR: the rows of `ait_mlir/dtypes.py` with their IR types."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ait_mlir import dtypes

Float8 = Float8E4M3FNType | Float8E5M2Type | Float8E8M0FNUType
Float = Float16Type | BFloat16Type | Float32Type | Float64Type | Float8


@dataclass(frozen=True, kw_only=True)
class DType(dtypes.DType):
    """One element type with its IR type."""

    ir: Attribute

    @property
    def enumerator(self) -> str:
        """The name of the type's `ait_dtype` in C++: `AIT_F32`."""
        return "AIT_BOOL" if self.mlir == "i1" else f"AIT_{self.mlir.upper()}"


ui8 = IntegerType(8, Signedness.UNSIGNED)
i4, ui4 = IntegerType(4), IntegerType(4, Signedness.UNSIGNED)
f8E4M3FN, f8E5M2, f8E8M0FNU = Float8E4M3FNType(), Float8E5M2Type(), Float8E8M0FNUType()

_IR: dict[str, Attribute] = {
    str(t): t for t in (f16, bf16, f32, f64, i1, i8, i32, i64, ui8, i16, f8E4M3FN, f8E5M2, f8E8M0FNU, i4, ui4)
}

DTYPES: tuple[DType, ...] = tuple(DType(**asdict(row), ir=_IR[row.mlir]) for row in dtypes.DTYPES)

BY_IR: dict[Attribute, DType] = {d.ir: d for d in DTYPES}
BY_MLIR: dict[str, DType] = {d.mlir: d for d in DTYPES}
BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES} | {"float": BY_MLIR["f32"], "int": BY_MLIR["i32"]}

STORED_ONLY: frozenset[Attribute] = frozenset(d.ir for d in DTYPES if d.is_stored_only)
"""The types whose values are only moved and converted."""
LARGEST: dict[Attribute, float] = {d.ir: d.largest for d in DTYPES if d.is_float}
"""The largest finite number of each float type."""
_INFINITE: dict[Attribute, float] = {
    f16: 65520.0,
    bf16: float.fromhex("0x1.ffp127"),
    f32: float.fromhex("0x1.ffffffp127"),
    f8E4M3FN: math.nextafter(464.0, math.inf),
    f8E5M2: 61440.0,
    f8E8M0FNU: float.fromhex("0x1.8p127"),
}
"""The least number that rounds to infinity, or to NaN in a type without infinity."""


def overflows(number: float, element: Attribute) -> bool:
    """Whether a finite number becomes infinite in a float type, or NaN if the type has no infinity."""
    return math.isfinite(number) and abs(number) >= _INFINITE.get(element, math.inf)


def is_float(element_type: Attribute) -> bool:
    return isinstance(element_type, Float)


def is_computed_float(element_type: Attribute) -> bool:
    """Whether ops compute floats of this type: not those of 8 bits, which only store values."""
    return is_float(element_type) and element_type not in STORED_ONLY


def integer_range(element_type: Attribute) -> tuple[int, int] | None:
    """The least and the largest value of an integer type; None for any other type and for i1."""
    if element_type not in BY_IR or is_float(element_type) or element_type == i1:
        return None
    bits = 4 if element_type in (i4, ui4) else 8 * BY_IR[element_type].bytes
    is_unsigned = element_type in (ui8, ui4)
    return (0, (1 << bits) - 1) if is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def is_element_type(attribute: Attribute) -> bool:
    """Whether an attribute is an element type of tensors, and therefore of scalars in regions."""
    return attribute in BY_IR


def compute_type(element_type: Attribute) -> Attribute:
    """The type in which kernels compute values of `element_type`: f32 for narrower floats, an integer of a byte for one
    of 4 bits, else the type itself."""
    if isinstance(element_type, Float16Type | BFloat16Type | Float8):
        return f32
    return _BYTES.get(element_type, element_type)


_BYTES: dict[Attribute, Attribute] = {i4: i8, ui4: ui8}


def constant_type(element_type: Attribute) -> Attribute:
    """The type to which the number of a constant with equal elements is rounded: f32 for f16 and bf16, else the element
    type.

    Kernels compute in f32 with such numbers of f16 and bf16.
    """
    return f32 if element_type in (f16, bf16) else element_type


def accumulator_type(element_type: Attribute) -> Attribute:
    """The type of the sums of products of `element_type`: i32 for integers of 8 bits, else the compute type."""
    return i32 if is_byte(element_type) else compute_type(element_type)


def is_byte(element_type: Attribute) -> bool:
    """Whether the element type is an integer of 8 bits."""
    return element_type in (i8, ui8)


def is_float8(element_type: Attribute) -> bool:
    """Whether the element type is a float of 8 bits that products multiply; f8E8M0FNU is for scales."""
    return element_type in (f8E4M3FN, f8E5M2)
