"""Layers of detectors on features [N, H, W, C] and regions [R, 5], each (image, x1, y1, x2, y2)."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.tensor import Tensor


class RoiAlign(Module):
    """Features of regions: [R, pooled_size, pooled_size, C]; options as in `ops.roi_align`."""

    def __init__(
        self,
        num_rois: int,
        pooled_size: int,
        sampling_ratio: int,
        spatial_scale: float,
        position_sensitive: bool,
        continuous_coordinate: bool,
    ):
        self.operator = ops.roi_align(
            num_rois, pooled_size, sampling_ratio, spatial_scale, position_sensitive, continuous_coordinate
        )

    def forward(self, x: Tensor, rois: Tensor) -> Tensor:
        return self.operator(x, rois)


class FPNRoiAlign(Module):
    """Features of regions, each from the level for its size; options as in `ops.multi_level_roi_align`."""

    def __init__(
        self,
        num_rois: int,
        pooled_size: int,
        sampling_ratio: int,
        spatial_scale: float,
        position_sensitive: bool,
        continuous_coordinate: bool,
        im_shape: Sequence[int],
    ):
        self.operator = ops.multi_level_roi_align(
            num_rois, pooled_size, sampling_ratio, spatial_scale, position_sensitive, continuous_coordinate, im_shape
        )

    def forward(self, p2: Tensor, p3: Tensor, p4: Tensor, p5: Tensor, rois: Tensor) -> Tensor:
        return self.operator(p2, p3, p4, p5, rois)
