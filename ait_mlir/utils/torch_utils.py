"""Dtypes of PyTorch by the names of the builder, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ait_mlir.dtypes import DTYPES


def types_mapping() -> Iterator[tuple[Any, str]]:
    """The dtype of PyTorch and the name of each dtype."""
    import torch

    return ((getattr(torch, row.name), row.name) for row in DTYPES)


def torch_dtype_to_string(dtype: Any) -> str:
    """The name of a dtype of PyTorch; `ValueError` for a dtype that models do not support."""
    for found, name in types_mapping():
        if found == dtype:
            return name
    raise ValueError(
        f"no tensor of a model has the dtype {dtype}; expected one of {[name for _, name in types_mapping()]}"
    )


def string_to_torch_dtype(string_dtype: str | None) -> Any:
    """The dtype of PyTorch of a name, None for None; `ValueError` for an unknown name."""
    if string_dtype is None:
        return None
    for found, name in types_mapping():
        if name == string_dtype:
            return found
    raise ValueError(f'unknown dtype "{string_dtype}"; expected one of {[name for _, name in types_mapping()]}')
