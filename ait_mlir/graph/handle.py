"""Handles: the device and the stream on which graphs run."""

from __future__ import annotations

from typing import Any

from ait_mlir.errors import InputError, RunError
from ait_mlir.lowering.toolchain import TargetKind
from ait_mlir.runtime.data import torch_module

CUDNN = "9.27.0"
"""The version of cuDNN that belongs to the version of `nvidia-cudnn-frontend` that this package follows."""


class Handle:
    """A device ("cpu", "cuda:0") and the stream on which `execute` launches. The default stream is 0."""

    def __init__(self, device: str, stream: int = 0) -> None:
        self.device = device
        self.stream = stream
        self.is_destroyed = False

    @property
    def kind(self) -> TargetKind:
        """The target that graphs are compiled for."""
        return "cpu" if self.device == "cpu" else "cuda"

    @property
    def ordinal(self) -> int:
        """The number of the device."""
        return ordinal_of(self.device)

    def __repr__(self) -> str:
        return f"<Handle of {self.device}, stream {self.stream:#x}{', destroyed' if self.is_destroyed else ''}>"


def ordinal_of(device: str) -> int:
    """The number in "cuda:1"."""
    return int(device.partition(":")[2] or 0)


def default_device() -> str:
    """The current CUDA device of PyTorch if there is one, else the CPU."""
    torch = torch_module()
    if torch is not None and torch.cuda.is_available():
        return f"cuda:{torch.cuda.current_device()}"
    return "cpu"


def device_name(device: object) -> str:
    """A device of PyTorch, a name or a number as "cpu" or "cuda:0"; `InputError` for any other."""
    if device is None:
        return default_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    kind, _, number = str(device).partition(":")
    if kind == "cpu" or (kind == "cuda" and (not number or number.isdigit())):
        if kind == "cuda" and not number:
            torch = torch_module()
            number = str(torch.cuda.current_device()) if torch is not None and torch.cuda.is_available() else "0"
        return "cpu" if kind == "cpu" else f"cuda:{number}"
    raise InputError(f"{device!r} is no device; expected 'cpu', 'cuda', 'cuda:N' or a torch.device")


def create_handle(device: object = None, stream: object = None) -> Handle:
    """A handle for a device, by default PyTorch's current CUDA device, or the CPU without a CUDA device."""
    return Handle(device_name(device), stream_address(stream))


def destroy_handle(handle: Handle) -> None:
    """Destroy a handle; later uses raise."""
    checked(handle).is_destroyed = True


def set_stream(handle: Handle, stream: object) -> None:
    """Launch on this stream from now on: the address of a `cudaStream_t`, or a `torch.cuda.Stream`."""
    checked(handle).stream = stream_address(stream)


def get_stream(handle: Handle) -> int:
    """The address of the stream."""
    return checked(handle).stream


def stream_address(stream: Any) -> int:
    """The address of a stream; 0 for None. `torch.compile` gives the device-independent `torch.Stream`."""
    if stream is None:
        return 0
    if hasattr(stream, "stream_id") and not hasattr(stream, "cuda_stream"):
        torch: Any = torch_module()
        numbers = {name: getattr(stream, name) for name in ("stream_id", "device_index", "device_type")}
        stream = torch.cuda.Stream(**numbers)
    address = getattr(stream, "cuda_stream", stream)
    if not isinstance(address, int) or isinstance(address, bool):
        raise InputError(f"{stream!r} is no stream; expected an address or a torch.cuda.Stream")
    return address


def checked(handle: object) -> Handle:
    """The handle; raises if the object is no handle or was destroyed."""
    if not isinstance(handle, Handle):
        raise InputError(f"expected a handle from create_handle(), found {type(handle).__name__}")
    if handle.is_destroyed:
        raise RunError(f"{handle!r} cannot be used any more: create another one")
    return handle


def backend_version() -> int:
    """The version of cuDNN whose graphs this package follows, as its number: major * 10000 + minor * 100 + patch."""
    major, minor, patch = map(int, CUDNN.split("."))
    return major * 10000 + minor * 100 + patch


def backend_version_string() -> str:
    """The version of cuDNN whose graphs this package follows."""
    return CUDNN
