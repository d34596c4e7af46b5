"""The documented import path of `TensorAccessor`."""

from __future__ import annotations

from ait_mlir.frontend.accessor import TensorAccessor

__all__ = ["TensorAccessor"]
