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

    @property
    def is_float(self) -> bool:
        return self.mantissa > 0

    @property
    def largest(self) -> float:
        """The largest finite number of a float type."""
        return (2 - 2.0**-self.mantissa) * 2.0**self.max_exponent

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
)

BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an element type by its name: "float16", "bfloat16", "bool" ..."""
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
