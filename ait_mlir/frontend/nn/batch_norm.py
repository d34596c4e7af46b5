"""Batch norm by the statistics that were learned."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.tensor import Tensor


class BatchNorm(Module):
    """(x - running_mean) / sqrt(running_var + eps) * weight + bias, for each channel of [batch, sizes..., channels].

    Source: arXiv:1502.03167. `momentum` is used in training only. If the data of all parameters are known when the
    model is compiled, a batch norm after a convolution becomes part of its weights.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        dtype: str = "float16",
    ):
        self.eps = eps
        self.weight = Parameter([num_features], dtype) if affine else None
        self.bias = Parameter([num_features], dtype) if affine else None
        self.running_mean = Parameter([num_features], dtype)
        self.running_var = Parameter([num_features], dtype)

    def forward(self, x: Tensor) -> Tensor:
        factor = ops.elementwise(FuncEnum.RSQRT)(self.running_var.tensor() + self.eps)
        if self.weight is not None:
            factor = factor * self.weight.tensor()
        offset = -(self.running_mean.tensor() * factor)
        if self.bias is not None:
            offset = offset + self.bias.tensor()
        return x * factor + offset


class BatchNorm1d(BatchNorm):
    __doc__ = BatchNorm.__doc__


class BatchNorm2d(BatchNorm):
    __doc__ = BatchNorm.__doc__


class BatchNorm3d(BatchNorm):
    __doc__ = BatchNorm.__doc__
