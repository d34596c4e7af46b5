"""The table of element types: the names and the storage of each, from Python to C++ and files.

This file has no heavy imports, so running a model needs no compiler. `dialects/ait/dtypes.py` adds the IR types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type."""

    mlir: str
    name: str
    """The name in Python, NumPy and PyTorch."""
    bytes: int
    abi: int
    """Its number in `ait/model_abi.h`."""
    cpp: str
    dlpack: int
    """The type code of DLPack."""
    safetensors: str
    mantissa: int = 0
    """Mantissa bits of a float, without the leading 1; 0 for other types."""
    max_exponent: int = 0
    """The exponent of the largest float, as a power of two."""
    ends_early: bool = False
    """Whether the last mantissa of the largest exponent is NaN instead of the largest float."""
    is_stored_only: bool = False
    """Whether values of the type are only moved and converted: no op computes in it."""

    @property
    def is_float(self) -> bool:
        return self.max_exponent > 0

    @property
    def largest(self) -> float:
        """The largest finite number of a float type."""
        return (2 - 2.0**-self.mantissa * (1 + self.ends_early)) * 2.0**self.max_exponent

    def holds(self, other: DType) -> bool:
        """Whether every value of another float type is one of this float type."""
        return self.mantissa >= other.mantissa and self.max_exponent >= other.max_exponent


DTYPES: tuple[DType, ...] = (
    #      mlir    name    bytes abi   C++         dlpack safetensors mantissa max_exponent
    DType("f16", "float16", 2, 0, "ait::half", 2, "F16", 10, 15),
    DType("bf16", "bfloat16", 2, 1, "ait::bfloat16", 4, "BF16", 7, 127),
    DType("f32", "float32", 4, 2, "float", 2, "F32", 23, 127),
    DType("f64", "float64", 8, 3, "double", 2, "F64", 52, 1023),
    DType("i1", "bool", 1, 4, "bool", 6, "BOOL"),
    DType("i8", "int8", 1, 5, "int8_t", 0, "I8"),
    DType("i32", "int32", 4, 6, "int32_t", 0, "I32"),
    DType("i64", "int64", 8, 7, "int64_t", 0, "I64"),
    DType("ui8", "uint8", 1, 8, "uint8_t", 1, "U8"),
    DType("i16", "int16", 2, 9, "int16_t", 0, "I16"),
    DType("f8E4M3FN", "float8_e4m3fn", 1, 10, "ait::float8_e4m3fn", 10, "F8_E4M3", 3, 8, True, True),
    DType("f8E5M2", "float8_e5m2", 1, 11, "ait::float8_e5m2", 12, "F8_E5M2", 2, 15, False, True),
    DType("f8E8M0FNU", "float8_e8m0fnu", 1, 12, "ait::float8_e8m0fnu", 14, "F8_E8M0", 0, 127, False, True),
    DType("i4", "int4", 1, 13, "ait::int4_t", 0, "I4", is_stored_only=True),
    DType("ui4", "uint4", 1, 14, "ait::uint4_t", 1, "U4", is_stored_only=True),
)
"""A tensor of `i4` or `ui4` has an element in each byte, as in NumPy; `ait.unpack` reads two from each byte of ui8."""

BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES}
BEYOND_NUMPY = frozenset(("bfloat16", *(d.name for d in DTYPES if d.is_stored_only)))
"""The types that NumPy has only with the package ml_dtypes; NumPy does not export them through DLPack."""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an element type by its name: "float16", "bfloat16", "bool" ..."""
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name) if name in BEYOND_NUMPY else name)
