"""Element types: how each is called, stored and computed with."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute

Float = Float16Type | BFloat16Type | Float32Type | Float64Type


@dataclass(frozen=True)
class DType:
    """One element type: its IR type, its name in Python and NumPy, its size in bytes and its code in the model ABI."""

    ir: Attribute
    mlir: str
    name: str
    bytes: int
    abi: int
    cpp: str


DTYPES: tuple[DType, ...] = (
    DType(f16, "f16", "float16", 2, 0, "ait::half"),
    DType(bf16, "bf16", "bfloat16", 2, 1, "ait::bfloat16"),
    DType(f32, "f32", "float32", 4, 2, "float"),
    DType(f64, "f64", "float64", 8, 3, "double"),
    DType(i1, "i1", "bool", 1, 4, "bool"),
    DType(i8, "i8", "int8", 1, 5, "int8_t"),
    DType(i32, "i32", "int32", 4, 6, "int32_t"),
    DType(i64, "i64", "int64", 8, 7, "int64_t"),
)

BY_IR: dict[Attribute, DType] = {d.ir: d for d in DTYPES}
BY_MLIR: dict[str, DType] = {d.mlir: d for d in DTYPES}
BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES} | {"float": BY_MLIR["f32"], "int": BY_MLIR["i32"]}

LARGEST: dict[Attribute, float] = {
    f16: 65504.0,
    bf16: (2 - 2**-7) * 2.0**127,
    f32: (2 - 2**-23) * 2.0**127,
    f64: sys.float_info.max,
}
"""The largest finite number of each float type."""


def is_float(element_type: Attribute) -> bool:
    return isinstance(element_type, Float)


def integer_range(element_type: Attribute) -> tuple[int, int] | None:
    """The least and the largest value of an integer type; None for any other type, i1 among them."""
    if element_type not in BY_IR or is_float(element_type) or element_type == i1:
        return None
    half = 1 << (8 * BY_IR[element_type].bytes - 1)
    return -half, half - 1


def is_element_type(attribute: Attribute) -> bool:
    """Whether a tensor may hold it, and so whether it may be a scalar of a region."""
    return attribute in BY_IR


def compute_type(element_type: Attribute) -> Attribute:
    """The type in which values of `element_type` are computed: floats narrower than f32 widen to f32, others stay."""
    return f32 if isinstance(element_type, Float16Type | BFloat16Type) else element_type
