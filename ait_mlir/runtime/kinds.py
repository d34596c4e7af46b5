"""The kinds that AITemplate's runtime names: of copies, and of allocators."""

from __future__ import annotations

from enum import Enum


class AITemplateMemcpyKind(Enum):
    """Where the memory of a copy is. The device of the CPU target is the host."""

    HostToDevice = 0
    DeviceToHost = 1
    DeviceToDevice = 2


class AITemplateAllocatorKind(Enum):
    """How memory of a model is allocated. Both kinds are the same here: each model counts its bytes."""

    DEFAULT = 0
    TRACKING = 1
