"""Layers that pad 3 channels for kernels that read 16 bytes at once."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.tensor import Tensor


class Nhwc3to8(Module):
    """[N, H, W, 3] with five more channels of zeros."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.nhwc3to8()(x)


class Ndhwc3to8(Module):
    """[N, D, H, W, 3] with five more channels of zeros."""

    def forward(self, x: Tensor) -> Tensor:
        return ops.ndhwc3to8()(x)
