"""The kinds that AITemplate's runtime names: of copies, and of allocators."""

from __future__ import annotations

from enum import Enum


class AITemplateMemcpyKind(Enum):
    """The direction of a copy: from host or device to host or device. The device of the CPU target is the host."""

    HostToDevice = 0
    DeviceToHost = 1
    DeviceToDevice = 2


class AITemplateAllocatorKind(Enum):
    """Where the scratch memory of runs comes from. Constants are always memory of the model's own.

    AITemplate's two kinds mean the same here: device memory whose bytes each model counts. With `FRAMEWORK`, which
    AITemplate lacks, scratch memory comes from the allocator of the framework whose tensors are passed (PyTorch's
    caching allocator), which can reuse it afterwards; a framework without an allocator gets device memory.
    """

    DEFAULT = 0
    TRACKING = 1
    FRAMEWORK = 2
