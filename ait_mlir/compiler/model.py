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
"""The default of `num_runtimes`: the number of runs of a model that can be active at the same time."""
