"""Helpers of scripts that build models, under their documented names."""

from __future__ import annotations

from ait_mlir.utils import alignment, graph_utils, shape_utils, tensor_utils, torch_utils

__all__ = ["alignment", "graph_utils", "shape_utils", "tensor_utils", "torch_utils"]
