"""Multi-head attention layers."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.linear import Linear
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.tensor import Tensor


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, seq, heads * size] to [batch, heads, seq, size]."""
    batch, seq, hidden = x.shape()
    return ops.permute()(ops.reshape()(x, [batch, seq, heads, hidden / heads]), [0, 2, 1, 3])


def join_heads(x: Tensor) -> Tensor:
    """[batch, heads, seq, size] to [batch, seq, heads * size]."""
    batch, heads, seq, size = x.shape()
    return ops.reshape()(ops.permute()(x, [0, 2, 1, 3]), [batch, seq, heads * size])


class MultiheadAttention(Module):
    """Self attention over [batch, seq, dim]: one product for query, key and value, attention, projection.

    With `has_residual` the call takes the tensor that is added to the projection as its second argument.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        qkv_bias: bool = True,
        has_residual: bool = False,
        causal: bool = False,
        dtype: str = "float16",
    ):
        if dim % num_heads:
            raise BuildError(f"MultiheadAttention: {num_heads} heads do not divide dim {dim}")
        self.heads, self.causal = num_heads, causal
        self.qkv = Linear(dim, 3 * dim, bias=qkv_bias, dtype=dtype)
        self.proj = Linear(dim, dim, specialization="add" if has_residual else None, dtype=dtype)

    def forward(self, x: Tensor, *residual: Tensor) -> Tensor:
        q, k, v = (split_heads(t, self.heads) for t in ops.chunk()(self.qkv(x), 3, dim=-1))
        return self.proj(join_heads(ops.attention(self.causal)(q, k, v)), *residual)
