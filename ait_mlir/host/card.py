"""The CUDA card of this machine and the libraries that kernels run on, by name and version."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import time
from collections.abc import Generator
from pathlib import Path

from ait_mlir.host.cache import locked


@functools.cache
def card_name(device: int = 0) -> str:
    """The name of the card, such as `NVIDIA H200`; empty without a card."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    handle, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(handle), device) or cuda.cuDeviceGetName(name, 256, handle):
        return ""
    return name.value.decode(errors="replace")


@functools.cache
def card_id(device: int = 0) -> str:
    """A unique identifier of a card: its UUID in hex, or its number if it has no UUID."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return str(device)
    handle, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(handle), device) or cuda.cuDeviceGetUuid(found, handle):
        return str(device)
    return bytes(found).hex()


_DEVICE_MEMORY, _MEMORY_TYPE, _DEVICE_ORDINAL = 2, 2, 9
"""CUDA's number of device memory, and of the attributes of a pointer that say its memory and its card."""


def read_memory(address: int, count: int) -> bytes:
    """A copy of `count` bytes at an address in the memory of a CUDA card or of the host.

    Raises `ValueError` for the address 0, if there are bytes to read, and if the card refuses.
    """
    if not count:
        return b""
    if not address:
        raise ValueError(f"{count} bytes at the address 0")
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ctypes.string_at(address, count)
    kind, device = ctypes.c_uint(), ctypes.c_int()
    place = ctypes.c_uint64(address)
    if cuda.cuInit(0) or cuda.cuPointerGetAttribute(ctypes.byref(kind), _MEMORY_TYPE, place):
        return ctypes.string_at(address, count)
    if kind.value != _DEVICE_MEMORY:
        return ctypes.string_at(address, count)
    cuda.cuPointerGetAttribute(ctypes.byref(device), _DEVICE_ORDINAL, place)
    context, found = ctypes.c_void_p(), ctypes.create_string_buffer(count)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxPushCurrent_v2(context)
    try:
        status = cuda.cuMemcpyDtoH_v2(found, place, ctypes.c_size_t(count))
    finally:
        cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        cuda.cuDevicePrimaryCtxRelease_v2(device)
    if status:
        raise ValueError(f"{count} bytes at {address} on card {device.value} cannot be read (CUDA error {status})")
    return found.raw


@contextlib.contextmanager
def alone_on_card(device: int = 0) -> Generator[float]:
    """A context in which no other process with this cache times on the card; yields the seconds of waiting for it."""
    start = time.monotonic()
    with locked(f"card_{card_id(device)}"):
        yield time.monotonic() - start


@functools.cache
def driver_version() -> str:
    """The version of NVIDIA's kernel module, such as `580.65.06`; empty if there is none."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    words = text.splitlines()[0].split()
    return next((w for w in words if w[0].isdigit() and "." in w), words[0] if words else "")


def library_versions(paths: list[str]) -> str:
    """The name and size of each library in `paths` that exists, and the versions of their packages."""
    found = {f"{Path(p).name}:{Path(p).stat().st_size}" for p in paths if Path(p).is_file()}
    for package in ("nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cudnn-frontend"):
        try:
            found.add(f"{package}=={importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return " ".join(sorted(found))
