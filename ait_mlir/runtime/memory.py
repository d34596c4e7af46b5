"""Memory on the device of a model, for callers without a framework of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ait_mlir.errors import InputError
from ait_mlir.runtime.data import AITData, numpy_dtype
from ait_mlir.runtime.opened import OpenedModel


class DeviceMemory(OpenedModel):
    """The methods of `Model` for memory on its device."""

    def allocate_memory(self, num_bytes: int) -> int:
        """The address of new memory on the device, to be freed with `free_memory`."""
        self._function()
        address = int(self._module.allocate(num_bytes))
        self._allocated.add(address)
        return address

    def free_memory(self, address: int) -> None:
        """Free what `allocate_memory` gave; `InputError` for any other address."""
        self._function()
        if address and address not in self._allocated:
            raise InputError(f"address {address!r} was not given by allocate_memory of this model, or is free already")
        self._allocated.discard(address)
        self._module.release(address)

    def allocate_data(self, shape: Sequence[int], dtype: str) -> AITData:
        """A tensor on the device with any content; free its `data_ptr` with `free_memory`."""
        return AITData(self.allocate_memory(math.prod(shape) * numpy_dtype(dtype).itemsize), list(shape), dtype)

    def numpy_to_ait_data(self, array: np.ndarray[Any, Any]) -> AITData:
        """A copy of an array on the device; free its `data_ptr` with `free_memory`."""
        source = np.ascontiguousarray(array)
        address = self.allocate_memory(source.nbytes)
        self._module.copy(address, source.ctypes.data, source.nbytes)
        return AITData(address, list(array.shape), array.dtype.name)

    def ait_data_to_numpy(self, data: AITData) -> np.ndarray[Any, Any]:
        """A copy on the host of a tensor on the device."""
        self._function()
        array = np.empty(tuple(data.shape), dtype=numpy_dtype(data.dtype))
        self._module.copy(array.ctypes.data, data.data_ptr, array.nbytes)
        return array
