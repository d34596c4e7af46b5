"""Batch norm with learned statistics."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.tensor import Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"]


class BatchNorm(Module):
    """(x - running_mean) / sqrt(running_var + eps) * weight + bias, for each channel of [batch, sizes..., channels].

    Source: arXiv:1502.03167. `momentum` is used in training only. With `permute_input_output` the channels are dim 1 of
    the input and of the result, as in PyTorch. If the data of all parameters are known when the model is compiled, a
    batch norm after a convolution becomes part of its weights.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        dtype: str = "float16",
        permute_input_output: bool = False,
    ):
        self.eps, self.permute_input_output = eps, permute_input_output
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
        if not self.permute_input_output or x.rank < 3:
            return x * factor + offset
        inner = range(2, x.rank)
        last = ops.permute()(x, [0, *inner, 1])
        return ops.permute()(last * factor + offset, [0, x.rank - 1, *(d - 1 for d in inner)])


class BatchNorm1d(BatchNorm):
    __doc__ = BatchNorm.__doc__


class BatchNorm2d(BatchNorm):
    __doc__ = BatchNorm.__doc__


class BatchNorm3d(BatchNorm):
    __doc__ = BatchNorm.__doc__
