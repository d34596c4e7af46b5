"""The documented import path of running models: names only, from `ait_mlir.runtime`."""

from __future__ import annotations

from ait_mlir.runtime import AITData, Model, torch_to_ait_data

__all__ = ["AITData", "Model", "torch_to_ait_data"]
