"""The Python side of the runtime: loading and running compiled models."""

from __future__ import annotations

from ait_mlir.runtime.data import AITData, torch_to_ait_data
from ait_mlir.runtime.model import Model

__all__ = ["AITData", "Model", "torch_to_ait_data"]
