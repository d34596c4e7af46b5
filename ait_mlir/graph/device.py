"""Device properties: the device that a graph is compiled for, also on a machine without it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ait_mlir.errors import AitError, InputError
from ait_mlir.graph.handle import default_device, device_name, ordinal_of
from ait_mlir.lowering.target import architecture_problem
from ait_mlir.lowering.toolchain import TargetKind, default_arch, detect_cuda_arch
from ait_mlir.runtime.json_values import JsonError, parse_json


@dataclass(frozen=True)
class DeviceProperties:
    """A device ("cpu", "cuda:0") and its architecture ("native", "sm_90a")."""

    device: str
    arch: str

    @property
    def kind(self) -> TargetKind:
        """The target that graphs are compiled for."""
        return "cpu" if self.device == "cpu" else "cuda"

    @property
    def is_here(self) -> bool:
        """Whether this machine has the device."""
        return self.kind == "cpu" or detect_cuda_arch(ordinal_of(self.device)) == self.arch

    def serialize(self) -> str:
        """The properties as text, for `create_device_properties` on a machine without the device."""
        return json.dumps({"device": self.device, "arch": self.arch})


def create_device_properties(device: int | str = -1) -> DeviceProperties:
    """The properties of a CUDA device by its number, or from the text of `serialize`.

    Without a CUDA device, and for a negative number, those of the device that `create_handle` chooses. Raises
    `InputError` for a device that this machine does not have, and for other text.
    """
    if isinstance(device, str):
        return _parsed(device)
    if isinstance(device, bool) or not isinstance(device, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{device!r} is no device: expected a number, or the text of serialize()")
    name = default_device()
    if name != "cpu" and device >= 0:
        name = f"cuda:{device}"
    if name == "cpu" and device > 0:
        raise InputError(f"there is no CUDA device {device} on this machine")
    if name == "cpu":
        return DeviceProperties(name, default_arch("cpu"))
    arch = detect_cuda_arch(ordinal_of(name))
    if arch is None:
        raise InputError(f"there is no CUDA device {ordinal_of(name)} on this machine")
    return DeviceProperties(name, arch)


def _parsed(text: str) -> DeviceProperties:
    try:
        data = parse_json(text.encode(), "the device properties")
        properties = DeviceProperties(device_name(data.at("device").text()), data.at("arch").text())
    except (JsonError, AitError) as error:
        raise InputError(f"the text is not from serialize() of device properties: {error}") from None
    if problem := architecture_problem(properties.kind, properties.arch):
        raise InputError(f"the device properties name an architecture without kernels: {problem}")
    return properties


def checked_properties(value: object) -> DeviceProperties | None:
    """The device properties of a graph; `InputError` for another object."""
    if value is not None and not isinstance(value, DeviceProperties):
        raise InputError(f"device_property is a {type(value).__name__}, expected one of create_device_properties()")
    return value
