"""Data of weights in the documented wrappers, and the check that data fit a weight."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.dialects.ait.dtypes import BY_IR, BY_NAME
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.frontend.errors import BuildError
from ait_mlir.runtime.data import is_torch, to_numpy


class ConstantTensorData(ABC):
    """The bytes of a weight, row-major, and their dtype."""

    def __init__(self, dtype: str):
        if dtype not in BY_NAME:
            raise BuildError(f'unknown dtype "{dtype}"; expected one of {", ".join(sorted(BY_NAME))}')
        self.dtype = BY_NAME[dtype].name

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The data, row-major."""

    def size(self) -> int:
        """The number of bytes."""
        return len(self.to_bytes())

    def __len__(self) -> int:
        return self.size()

    def is_dtype(self, dtype: str) -> bool:
        """Whether this is the dtype of the data; short names are allowed."""
        return dtype in BY_NAME and BY_NAME[dtype].name == self.dtype

    def array_for(self, what: str, type: TensorType) -> NDArray[Any]:
        """The data as an array of the shape of `type`; `BuildError` for another dtype or size."""
        shape = fixed_shape(what, type)
        dtype = BY_IR[type.element_type]
        if not self.is_dtype(dtype.name):
            raise BuildError(f"{what} has dtype {dtype.name}, but the data have {self.dtype}")
        if (size := math.prod(shape) * dtype.bytes) != self.size():
            raise BuildError(f"{what} has {size} bytes, but the data have {self.size()}")
        return np.frombuffer(self.to_bytes(), numpy_dtype(dtype.name)).reshape(shape)


class HostConstantTensorData(ConstantTensorData):
    """Bytes in host memory."""

    def __init__(self, data: bytes, dtype: str = "float16"):
        super().__init__(dtype)
        self.data = data

    def to_bytes(self) -> bytes:
        return self.data


class NumpyConstantTensorData(ConstantTensorData):
    """A NumPy array."""

    def __init__(self, arr: NDArray[Any]):
        super().__init__(str(arr.dtype))
        self.arr = arr

    def to_bytes(self) -> bytes:
        return self.arr.tobytes()

    def size(self) -> int:
        return self.arr.nbytes


class TorchConstantTensorData(ConstantTensorData):
    """A torch tensor, on any device."""

    def __init__(self, tensor: Any):
        if not is_torch(tensor):
            raise BuildError(f"expected a torch.Tensor, found {type(tensor).__name__}")
        super().__init__(str(tensor.dtype).removeprefix("torch."))
        self.tensor = tensor

    def to_bytes(self) -> bytes:
        return to_numpy(self.tensor).tobytes()

    def size(self) -> int:
        return self.tensor.element_size() * self.tensor.nelement()


def fixed_shape(what: str, type: TensorType) -> tuple[int, ...]:
    """The static shape of a weight; `BuildError` if it has a dynamic dim."""
    if (shape := type.static_shape()) is None:
        raise BuildError(f"{what} has a dynamic dim; the shape of a weight is fixed")
    return shape


def check_data(what: str, type: TensorType, data: NDArray[Any]) -> None:
    """`BuildError` unless `data` has the shape and dtype of `type`."""
    shape = fixed_shape(what, type)
    dtype = BY_IR[type.element_type].name
    if data.dtype.name != dtype:
        raise BuildError(f"{what}: data's dtype did not match: expected {dtype}, got {data.dtype.name}")
    if tuple(np.shape(data)) != shape:
        found = f"shape {list(np.shape(data))} and dtype {data.dtype.name}"
        raise BuildError(f"{what} has shape {list(shape)} and dtype {dtype}, but the data have {found}")
