"""The documented import path of running models: names only, from `ait_mlir.runtime`."""

from __future__ import annotations

from ait_mlir.runtime import AITData, AITemplateAllocatorKind, AITemplateMemcpyKind, Model, torch_to_ait_data

__all__ = [
    "AIT_DEFAULT_NUM_RUNTIMES",
    "AITData",
    "AITemplateAllocatorKind",
    "AITemplateMemcpyKind",
    "Model",
    "torch_to_ait_data",
]

AIT_DEFAULT_NUM_RUNTIMES = 1
"""How many runs of a model can be under way at the same time, unless `num_runtimes` says otherwise."""
