"""Layers of detectors on features [N, H, W, C] and regions [R, 5], each (image, x1, y1, x2, y2)."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import OperatorLayer

__all__ = ["FPNRoiAlign", "RoiAlign"]


class RoiAlign(OperatorLayer):
    """Features of regions: [R, pooled_size, pooled_size, C]; options as in `ops.roi_align`."""

    OPERATOR = ops.roi_align


class FPNRoiAlign(OperatorLayer):
    """Features of regions, each from the level for its size; options as in `ops.multi_level_roi_align`."""

    OPERATOR = ops.multi_level_roi_align
