"""Element types of ONNX that the dialect lacks, and the types of the dialect that hold their elements.

Integers of more bits hold the numbers of int2, uint2, uint16 and uint32, floats of more bits those of narrow floats.
An i64 holds the bits of a uint64: sums and products are the same, and comparisons are those of the numbers with the
highest bit inverted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f16, i8, i32, i64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR, f8E4M3FN, is_float, ui8
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.importers.onnx.call import Tensor
from ait_mlir.importers.onnx.known import Known, element_type
from ait_mlir.importers.onnx.library import onnx
from ait_mlir.importers.onnx.model import array_of


@dataclass(frozen=True)
class Holder:
    """The element type that holds the elements of a type of ONNX, and the dtype of NumPy that this type has."""

    element: Attribute
    outside: np.dtype[Any]

    @property
    def inside(self) -> np.dtype[Any]:
        """The dtype of the type that holds the elements."""
        return numpy_dtype(BY_IR[self.element].name)

    @property
    def is_float(self) -> bool:
        return is_float(self.element)

    @property
    def has_numbers(self) -> bool:
        """Whether the numbers are held, and not the bits only."""
        return self.outside != np.uint64

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest number of an integer type."""
        found = ml_dtypes.iinfo(self.outside)
        return int(found.min), int(found.max)

    @property
    def mask(self) -> int:
        """The bits of an element of an integer type."""
        low, high = self.ends
        return high - low

    def held(self, array: Any) -> NDArray[Any]:
        return np.asarray(array).astype(self.inside)

    def given(self, array: Any) -> NDArray[Any]:
        """The elements of ONNX's type that an array holds."""
        return np.asarray(array).astype(self.outside)


def _holders() -> dict[int, Holder]:
    held_by = {
        "INT2": i8,
        "UINT2": ui8,
        "UINT16": i32,
        "UINT32": i64,
        "UINT64": i64,
        "FLOAT4E2M1": f8E4M3FN,
        "FLOAT8E4M3FNUZ": f16,
        "FLOAT8E5M2FNUZ": f16,
    }
    known = {int(getattr(onnx.TensorProto, k)): e for k, e in held_by.items() if hasattr(onnx.TensorProto, k)}
    return {n: Holder(e, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(n))) for n, e in known.items()}


HOLDERS: dict[int, Holder] = _holders()
"""By the `TensorProto.DataType`; an older `onnx` lacks some of the types."""


@dataclass(frozen=True)
class Held:
    """A tensor of a type that the dialect lacks."""

    value: Tensor
    """Its elements in the type of the holder."""
    kind: int
    """The `TensorProto.DataType`."""

    @property
    def holder(self) -> Holder:
        return HOLDERS[self.kind]


def tensor_of(tensor: Any, folder: Path | None, least: int, name: str = "") -> Known | Held:
    """The elements of a `TensorProto`. Floats are a weight if there are more than `least` of them, else a constant.

    Raises `NotSupported` as `array_of` does.
    """
    if (holder := HOLDERS.get(tensor.data_type)) is None:
        array, element = array_of(tensor, folder), element_type(tensor.data_type)
        return Known(array, element, name, array.dtype.kind not in "iub" and array.size > least)
    array = holder.held(array_of(tensor, folder, holder.outside))
    return Held(Known(array, holder.element, name, holder.is_float and array.size > least), tensor.data_type)


__all__ = ["HOLDERS", "Held", "Holder", "tensor_of"]
