"""Tensors whose elements the import knows: numbers, and whole numbers that are expressions of dims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR, BY_NAME
from ait_mlir.dialects.ait.types import Shape
from ait_mlir.dims import MAX_LITERAL, Expr, const
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.importers.errors import NotSupported
from ait_mlir.importers.onnx.library import onnx

LONGEST = 1 << 16
"""The most elements of a tensor that the import computes."""


@dataclass(frozen=True, eq=False)
class Known:
    """A tensor with known elements. `array` holds numbers, or objects: integers and dim expressions."""

    array: NDArray[Any]
    element: Attribute
    name: str = ""
    """The name of the weight that it is; empty for a result of the import."""
    is_weight: bool = False
    """Whether its numbers are data of the model, which the import does not compute with."""

    @property
    def dims(self) -> Shape:
        return tuple(const(n) for n in self.array.shape)

    @property
    def has_dims(self) -> bool:
        """Whether an element depends on the dims."""
        return self.array.dtype == object

    def exprs(self) -> list[Expr]:
        """The elements in row-major order, as expressions. Expressions cannot hold -2^63, which becomes -2^63 + 1."""
        return [n if isinstance(n, Expr) else const(max(int(n), -MAX_LITERAL)) for n in self.array.reshape(-1).tolist()]


def known(values: Any, element: Attribute) -> Known:
    """A known tensor of whole numbers and expressions; expressions that are numbers become numbers."""
    array: NDArray[Any] = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.dtype == object:
        flat = [_number(n) for n in array.reshape(-1).tolist()]
        if not any(isinstance(n, Expr) for n in flat):
            array = np.array(flat, dtype=numpy_dtype(BY_IR[element].name)).reshape(array.shape)
        else:
            array = _objects(flat, array.shape)
    return Known(array, element)


def _number(n: Any) -> Any:
    return n if not isinstance(n, Expr) or (number := n.as_int()) is None else number


def _objects(flat: Iterable[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    made = np.empty(shape, dtype=object)
    made.reshape(-1)[:] = list(flat)
    return made


def objects(tensor: Known) -> NDArray[Any]:
    """The elements as objects: Python integers and expressions."""
    return _objects(tensor.array.reshape(-1).tolist(), tensor.array.shape)


def name_of_type(number: int) -> str:
    """The name of a `TensorProto.DataType`; of an unknown one, the number."""
    known = onnx.TensorProto.DataType
    return known.Name(number) if number in known.values() else str(number)


def element_type(number: int) -> Attribute:
    """The element type of a `TensorProto.DataType`; `NotSupported` for one that the dialect lacks."""
    try:
        name = str(onnx.helper.tensor_dtype_to_np_dtype(number))
        text = onnx.TensorProto.DataType.Name(number)
    except (KeyError, ValueError):
        raise NotSupported(f"tensors of the unknown type {number} are not supported") from None
    if number == onnx.TensorProto.STRING:
        raise NotSupported("tensors of STRING are not supported; compute strings outside of the model")
    if name not in BY_NAME:
        kinds = ", ".join(sorted(BY_NAME.keys() - {"float", "int"}))
        raise NotSupported(f"tensors of {text} are not supported; the types are {kinds}")
    return BY_NAME[name].ir


def onnx_type(element: Attribute) -> int:
    """The `TensorProto.DataType` of an element type."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(BY_IR[element].name)))
