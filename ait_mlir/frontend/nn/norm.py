"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.tensor import Tensor

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class LayerNorm(Module):
    """Normalise over the trailing dims `dim`, then scale by `weight` and shift by `bias` (arXiv:1607.06450)."""

    def __init__(self, dim: int | Sequence[int], eps: float = 1e-5, dtype: str = "float16"):
        shape = [dim] if isinstance(dim, int) else list(dim)
        self.shape = shape
        self.eps = eps
        self.weight = Parameter(shape, dtype)
        self.bias = Parameter(shape, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.layernorm()(x, self.weight.tensor(), self.bias.tensor(), self.shape, self.eps)


class RMSNorm(Module):
    """Divide by the root of the mean square over the trailing dims `dim`, then scale by `weight` (arXiv:1910.07467)."""

    def __init__(self, dim: int | Sequence[int], eps: float = 1e-5, dtype: str = "float16"):
        self.shape = [dim] if isinstance(dim, int) else list(dim)
        self.eps = eps
        self.weight = Parameter(self.shape, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.rms_norm()(x, self.weight.tensor(), None, self.shape, self.eps)


class GroupNorm(Module):
    """Normalise groups of channels of [batch, ..., channels], then scale and shift (arXiv:1803.08494)."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, dtype: str = "float16"):
        self.operator = ops.group_norm(num_groups, num_channels)
        self.eps = eps
        self.weight = Parameter([num_channels], dtype)
        self.bias = Parameter([num_channels], dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x, self.weight.tensor(), self.bias.tensor(), eps=self.eps)
