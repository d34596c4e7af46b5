"""The documented import path of dtypes by name."""

from __future__ import annotations

from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.frontend.tensor import normalize_dtype

__all__ = ["dtype_str_to_enum", "dtype_to_enumerator", "get_dtype_size", "normalize_dtype"]

_ENUM = {"float16": 1, "float32": 2, "int32": 3, "int64": 4, "bool": 5, "bfloat16": 6}
_ENUMERATORS = {
    "float16": "kHalf",
    "float32": "kFloat",
    "int32": "kInt",
    "int64": "kLong",
    "bool": "kBool",
    "bfloat16": "kBFloat16",
}


def get_dtype_size(dtype: str) -> int:
    """The size of an element in bytes; `BuildError`, a `ValueError`, for an unknown dtype."""
    return BY_NAME[normalize_dtype(dtype)].bytes


def dtype_str_to_enum(dtype: str) -> int:
    """AITemplate's number of a dtype, which `Model.get_output_dtype` returns."""
    if (found := _ENUM.get(normalize_dtype(dtype))) is None:
        raise ValueError(f"AITemplate has no number for the dtype {dtype}; it has {', '.join(_ENUM)}")
    return found


def dtype_to_enumerator(dtype: str) -> str:
    """AITemplate's name of a dtype in C++."""
    if (found := _ENUMERATORS.get(normalize_dtype(dtype))) is None:
        raise ValueError(f"AITemplate has no C++ name for the dtype {dtype}; it has {', '.join(_ENUMERATORS)}")
    return found
