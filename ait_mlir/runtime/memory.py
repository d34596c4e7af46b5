"""Memory on the device of a model, for callers without a framework of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.runtime.data import AITData, as_address, as_stream, as_whole, empty
from ait_mlir.runtime.kinds import AITemplateMemcpyKind
from ait_mlir.runtime.opened import OpenedLibrary


class DeviceMemory:
    """Memory that a caller allocates on a model's device, and copies from and to it.

    A copy is made after what is on the stream `stream_ptr` (stream 0 by default). With `sync` the call waits for it.
    Memory is allocated and freed at once, so `allocate_gpu_memory` and `free_gpu_memory` need no stream; they take one
    because AITemplate's do.
    """

    def __init__(self, library: OpenedLibrary) -> None:
        self._library = library
        self._allocated: dict[int, int] = {}

    def allocate_memory(self, num_bytes: int) -> int:
        """The address of new memory on the device, 256-byte aligned, to be freed with `free_memory`; 0 for no bytes."""
        self._library.require_open()
        num_bytes = as_whole("the number of bytes", num_bytes)
        address = int(self._library.module.allocate(num_bytes))
        self._allocated[address] = num_bytes
        return address

    def free_memory(self, address: int) -> None:
        """Free memory from `allocate_memory`; `InputError` for any other address."""
        self._library.require_open()
        if address and address not in self._allocated:
            raise InputError(f"address {address!r} was not given by allocate_memory of this model, or is free already")
        self._allocated.pop(address, None)
        self._library.module.release(address)

    def allocate_gpu_memory(self, nbytes: int, stream_ptr: int | None = None, sync: bool = True) -> int:
        """`allocate_memory`, under AITemplate's name."""
        return self.allocate_memory(nbytes)

    def free_gpu_memory(self, ptr: int, stream_ptr: int | None = None, sync: bool = True) -> None:
        """`free_memory`, under AITemplate's name."""
        self.free_memory(ptr)

    def memcpy(
        self,
        dst: int,
        src: int,
        count: int,
        kind: AITemplateMemcpyKind,
        stream_ptr: int | None = None,
        sync: bool = True,
    ) -> None:
        """Copy `count` bytes from address `src` to address `dst`; `kind` says which of them are on the device.

        Raises `InputError` for null addresses, values that are not integers, and negative counts, before anything is
        copied.
        """
        self._library.require_open()
        if not isinstance(kind, AITemplateMemcpyKind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a copy is of kind {kind!r}, expected an AITemplateMemcpyKind")
        try:
            dst, src = as_address(dst), as_address(src)
        except (OverflowError, TypeError) as error:
            raise InputError(f"a copy from address {src} to {dst}: {error}") from None
        if count >= 1 << 63 or count < 0 or (count and not (dst and src)):
            raise InputError(
                f"a copy of {count} bytes from address {src} to {dst}, expected addresses that are not null, and "
                "from 0 to below 2^63 bytes"
            )
        self._library.module.copy_on(dst, src, count, as_stream(stream_ptr), sync)

    def allocate_data(self, shape: Sequence[int], dtype: str) -> AITData:
        """A tensor on the device with any content; free its `data_ptr` with `free_memory`."""
        return AITData(self.allocate_memory(math.prod(shape) * numpy_dtype(dtype).itemsize), list(shape), dtype)

    def numpy_to_ait_data(
        self, array: np.ndarray[Any, Any], stream_ptr: int | None = None, sync: bool = True
    ) -> AITData:
        """A copy of an array on the device; free its `data_ptr` with `free_memory`.

        Without `sync`, keep the array until the stream is done.
        """
        source = np.ascontiguousarray(array)
        address = self.allocate_memory(source.nbytes)
        self._library.module.copy_on(
            address, source.ctypes.data, source.nbytes, as_stream(stream_ptr), sync or source is not array
        )
        return AITData(address, list(array.shape), array.dtype.name)

    def ait_data_to_numpy(
        self, data: AITData, stream_ptr: int | None = None, sync: bool = True
    ) -> np.ndarray[Any, Any]:
        """A copy on the host of a tensor on the device. Without `sync`, read it when the stream is done."""
        self._library.require_open()
        array = empty(data.shape, numpy_dtype(data.dtype))
        self._library.module.copy_on(array.ctypes.data, data.data_ptr, array.nbytes, as_stream(stream_ptr), sync)
        return array

    def allocated_bytes(self) -> int:
        """Bytes of device memory that the model holds now: constants, arenas, and the caller's allocations."""
        self._library.require_open()
        return int(self._library.module.allocated_bytes()) + sum(self._allocated.values())
