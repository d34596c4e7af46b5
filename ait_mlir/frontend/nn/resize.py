"""Resampling layers of [N, H, W, C]."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import OperatorLayer

__all__ = ["Upsampling2d", "Upsampling2dAdd"]


class Upsampling2d(OperatorLayer):
    """H and W are multiplied by `scale_factor`. The options are those of `ops.upsampling2d`."""

    OPERATOR = ops.upsampling2d


class Upsampling2dAdd(OperatorLayer):
    """H and W are multiplied by `scale_factor`, then a residual is added."""

    OPERATOR = ops.upsampling2d_add
