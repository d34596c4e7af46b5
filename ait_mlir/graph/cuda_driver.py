"""Calls of the CUDA driver."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.errors import RunError


@functools.cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RunError(f"there is no CUDA driver: {error}") from None


def call_driver(name: str, *args: Any) -> None:
    """Call a function of the CUDA driver; `RunError` unless it returns 0."""
    if (status := getattr(_driver(), name)(*args)) != 0:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise RunError(f"{name} failed: {(text.value or b'').decode(errors='replace')} ({status})")


def write_scalar(address: int, number: NDArray[Any], stream: int) -> None:
    """Write a scalar of 1 to 8 bytes into device memory, on a stream, without memory of the host."""
    raw = number.tobytes()
    sizes = {1: ("cuMemsetD8Async", np.uint8), 2: ("cuMemsetD16Async", np.uint16)}
    function, unit = sizes.get(len(raw), ("cuMemsetD32Async", np.uint32))
    for i, word in enumerate(np.frombuffer(raw, dtype=unit)):
        place = ctypes.c_uint64(address + i * word.nbytes)
        call_driver(function, place, ctypes.c_uint(int(word)), ctypes.c_size_t(1), ctypes.c_void_p(stream))
