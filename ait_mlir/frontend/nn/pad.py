"""Layers that pad 3 channels for kernels that read 16 bytes at once."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import OperatorLayer

__all__ = ["Ndhwc3to8", "Nhwc3to8"]


class Nhwc3to8(OperatorLayer):
    """[N, H, W, 3] with five more channels of zeros."""

    OPERATOR = ops.nhwc3to8


class Ndhwc3to8(OperatorLayer):
    """[N, D, H, W, 3] with five more channels of zeros."""

    OPERATOR = ops.ndhwc3to8
