"""Multi-head attention layers."""

from __future__ import annotations

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.linear import Linear
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.tensor import Tensor

__all__ = ["CrossAttention", "FlashAttention", "MultiheadAttention"]


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

    With `has_residual` the call takes the tensor that is added to the projection as its second argument. The batch and
    the length of sequences follow from the input; `batch_size`, `seq_len` and `use_mem_eff` are arguments of AITemplate
    and change nothing. Dropout acts in training only. With `mask_seq`, the last rows of the batch are not computed: it
    is refused.
    """

    def __init__(
        self,
        dim: int,
        batch_size: int | None = None,
        seq_len: int | None = None,
        num_heads: int = 8,
        qkv_bias: bool = False,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        has_residual: bool = True,
        causal: bool = False,
        mask_seq: int = 0,
        use_mem_eff: bool = False,
        dtype: str = "float16",
    ):
        check_heads(self, dim, num_heads)
        if mask_seq:
            raise BuildError("MultiheadAttention: mask_seq is not supported; pass shorter sequences")
        self.heads, self.causal = num_heads, causal
        self.qkv = Linear(dim, 3 * dim, bias=qkv_bias, dtype=dtype)
        self.proj = Linear(dim, dim, specialization="add" if has_residual else None, dtype=dtype)

    def forward(self, x: Tensor, *residual: Tensor) -> Tensor:
        q, k, v = (split_heads(t, self.heads) for t in ops.chunk()(self.qkv(x), 3, dim=-1))
        return self.proj(join_heads(ops.attention(self.causal)(q, k, v)), *residual)


class CrossAttention(Module):
    """Attention of queries [batch, seq, dim] to keys and values [batch, seq_kv, dim], each with its own product.

    With `has_residual` the call takes the tensor that is added to the projection as its fourth argument. The lengths of
    sequences follow from the inputs.
    """

    def __init__(
        self,
        dim: int,
        seq_len: int | None = None,
        seq_len_kv: int | None = None,
        num_heads: int = 8,
        qkv_bias: bool = False,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        has_residual: bool = True,
        causal: bool = False,
        dtype: str = "float16",
    ):
        check_heads(self, dim, num_heads)
        self.heads, self.causal = num_heads, causal
        self.proj_q, self.proj_k, self.proj_v = (Linear(dim, dim, bias=qkv_bias, dtype=dtype) for _ in range(3))
        self.proj = Linear(dim, dim, specialization="add" if has_residual else None, dtype=dtype)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *residual: Tensor) -> Tensor:
        parts = (self.proj_q(q), self.proj_k(k), self.proj_v(v))
        made = ops.attention(self.causal)(*(split_heads(part, self.heads) for part in parts))
        return self.proj(join_heads(made), *residual)


class FlashAttention(Module):
    """Self attention of packed sequences [total, 3, heads, size]: [total, heads, size].

    The parameter `cu_length`, int32 [batch_size + 1], has the offsets at which sequences start and end.
    """

    def __init__(
        self, batch_size: int, max_seq_len: int, dropout: float = 0, causal: bool = False, dtype: str = "float16"
    ):
        self.cu_length = Parameter([batch_size + 1], "int32")
        self.operator = ops.flash_attention(batch_size, dropout, max_seq_len, causal)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x, self.cu_length.tensor())


def check_heads(module: Module, dim: int, num_heads: int) -> None:
    """`BuildError` unless heads of one size make up the dim."""
    if dim % num_heads:
        raise BuildError(f"{type(module).__name__}: {num_heads} heads do not divide dim {dim}")
