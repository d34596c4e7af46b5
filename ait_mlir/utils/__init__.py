"""Helpers of scripts that build models, under their documented names."""

from __future__ import annotations

from ait_mlir.utils import graph_utils, shape_utils, torch_utils

__all__ = ["graph_utils", "shape_utils", "torch_utils"]
