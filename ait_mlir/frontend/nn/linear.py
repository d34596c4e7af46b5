"""`Linear`: a matrix product with bias and an optional epilogue; the gated layers of T5."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.tensor import Tensor

__all__ = ["Linear", "T5DenseGatedGeluDense"]


class Linear(Module):
    """y = x @ weight^T + bias, over the last dim of [..., in_channels]; the weight is [out_channels, in_channels].

    `specialization` names the epilogue, as in the operators: "relu", "gelu", "fast_gelu", "add", "add_relu", "mul" ...;
    each "add" and "mul" takes one more argument of the call.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bias: bool = True,
        specialization: str | None = None,
        dtype: str = "float16",
    ):
        self.weight = Parameter([out_channels, in_channels], dtype)
        self.bias = Parameter([out_channels], dtype) if bias else None
        name = "_".join(["gemm_rcr", *(["bias"] if bias else []), *([specialization] if specialization else [])])
        if not hasattr(ops, name):
            raise BuildError(
                f'Linear: no specialization "{specialization}" with bias={bias}; there is no operator {name}'
            )
        self.operator = name

    def forward(self, x: Tensor, *extras: Tensor) -> Tensor:
        weights = [self.weight.tensor(), *([] if self.bias is None else [self.bias.tensor()])]
        return getattr(ops, self.operator)()(x, *weights, *extras)


class T5DenseGatedGeluDense(Module):
    """(gelu(x @ wi_0^T) * (x @ wi_1^T)) @ wo^T, gelu in the tanh form: the gated layers of T5 (arXiv:2002.05202).

    x is [..., in_channels], the width between is `out_channels`, the result [..., in_channels].
    """

    def __init__(self, in_channels: int, out_channels: int, dtype: str = "float16"):
        self.wi_0 = Linear(in_channels, out_channels, bias=False, dtype=dtype)
        self.wi_1 = Linear(in_channels, out_channels, bias=False, dtype=dtype)
        self.wo = Linear(out_channels, in_channels, bias=False, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        gated = ops.dual_gemm_rcr_fast_gelu()(x, self.wi_0.weight.tensor(), self.wi_1.weight.tensor())
        return self.wo(gated)
