"""The Python side of the runtime: loading and running compiled models."""

from __future__ import annotations

from ait_mlir.runtime.data import AITData, torch_to_ait_data
from ait_mlir.runtime.kinds import AITemplateAllocatorKind, AITemplateMemcpyKind
from ait_mlir.runtime.model import Model
from ait_mlir.runtime.profile import Profile

__all__ = [
    "AITData",
    "AITemplateAllocatorKind",
    "AITemplateMemcpyKind",
    "Model",
    "Profile",
    "torch_to_ait_data",
]
