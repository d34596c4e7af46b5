"""Which device a model is compiled for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Literal

from ait_mlir.frontend.errors import BuildError

Kind = Literal["cpu", "cuda", "rocm"]
KINDS: tuple[Kind, ...] = ("cpu", "cuda", "rocm")

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of the CUDA driver API."""


@dataclass(frozen=True)
class Target:
    """A kind of device and, where it is known, its architecture: "sm_90a", "gfx90a", "native"."""

    kind: Kind
    arch: str = "native"

    def name(self) -> str:
        return self.kind

    def __str__(self) -> str:
        return self.kind


def CPU() -> Target:
    return Target("cpu")


def CUDA(arch: str = "sm_90a") -> Target:
    return Target("cuda", arch)


def ROCM(arch: str = "gfx942") -> Target:
    return Target("rocm", arch)


def as_target(target: Target | str) -> Target:
    """A target, or its name, as a target; `BuildError` for an unknown name."""
    if isinstance(target, Target):
        return target
    if target not in KINDS:
        raise BuildError(f'unknown target "{target}"; expected one of {", ".join(KINDS)}')
    return Target(target)


def detect_target() -> Target:
    """The best device of this machine: the first CUDA device, else the first ROCm device, else the CPU."""
    if (capability := _cuda_capability()) is not None:
        major, minor = capability
        return CUDA(f"sm_{major}{minor}" + ("a" if major >= 9 else ""))
    return ROCM() if _hip_devices() else CPU()


def _cuda_capability() -> tuple[int, int] | None:
    """Compute capability of CUDA device 0, from the driver; None without driver or device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count, device = ctypes.c_int(0), ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return None
    if driver.cuDeviceGet(ctypes.byref(device), 0):
        return None
    found: list[int] = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int(0)
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return None
        found.append(value.value)
    return found[0], found[1]


def _hip_devices() -> int:
    try:
        runtime = ctypes.CDLL("libamdhip64.so")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return 0 if runtime.hipGetDeviceCount(ctypes.byref(count)) else count.value
