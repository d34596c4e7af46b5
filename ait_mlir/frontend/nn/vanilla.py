"""Attention written out as products and a softmax, under AITemplate's names; it is compiled as one attention."""

from __future__ import annotations

import math

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.attention import CrossAttention, MultiheadAttention, join_heads
from ait_mlir.frontend.tensor import Tensor

__all__ = ["VanillaCrossAttention", "VanillaMultiheadAttention", "vanilla_attention"]


def vanilla_attention(
    q: Tensor, k: Tensor, v: Tensor, scale: float | None = None, attn_mask: Tensor | None = None
) -> Tensor:
    """[batch, seq, heads * size] from q [batch, seq, heads, size] and k and v [batch, seq_kv, heads, size].

    `attn_mask` is added to the scores [batch * heads, seq, seq_kv] and broadcasts with them. `scale` is by default
    1 / sqrt(size).
    """
    batch, seq, heads, size = q.shape()
    known = q.type.dims[3].as_int()
    if scale is None and known is None:
        raise BuildError(f"vanilla_attention: give the scale, because the size of a head is {q.type.dims[3]}")
    factor = scale if scale is not None else 1 / math.sqrt(known or 1)
    rows = [ops.reshape()(ops.permute()(t, [0, 2, 1, 3]), [batch * heads, t.shape()[1], size]) for t in (q, k, v)]
    scores = ops.bmm_rcr()(rows[0] * factor, rows[1])
    if attn_mask is not None:
        scores = scores + attn_mask
    found = ops.bmm_rrr()(ops.softmax()(scores, -1), rows[2])
    return join_heads(ops.reshape()(found, [batch, heads, seq, size]))


class VanillaMultiheadAttention(MultiheadAttention):
    """`MultiheadAttention` with the caller's mask [1, seq, seq] as `causal`: 0 or -inf, added to the scores."""

    def __init__(
        self,
        dim: int,
        batch_size: int = -1,
        seq_len: int = -1,
        num_heads: int = 8,
        qkv_bias: bool = False,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        has_residual: bool = True,
        causal: bool = False,
        attn_mask: Tensor | None = None,
        mask_seq: int = 0,
        dtype: str = "float16",
    ):
        if causal != (attn_mask is not None):
            raise BuildError("VanillaMultiheadAttention: causal and attn_mask, the mask [1, seq, seq], belong together")
        drops = attn_drop, proj_drop
        super().__init__(
            dim, batch_size, seq_len, num_heads, qkv_bias, *drops, has_residual, causal, mask_seq, dtype=dtype
        )
        self.mask = attn_mask

    def forward(self, x: Tensor, *residual: Tensor) -> Tensor:
        parts = ops.chunk()(self.qkv(x), 3, dim=-1)
        q, k, v = (by_heads(part, self.heads) for part in parts)
        return self.proj(vanilla_attention(q, k, v, attn_mask=self.mask), *residual)


class VanillaCrossAttention(CrossAttention):
    """`CrossAttention` without a causal mask."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *residual: Tensor) -> Tensor:
        if self.causal:
            raise BuildError("VanillaCrossAttention: causal is not supported; use CrossAttention")
        q, k, v = (by_heads(t, self.heads) for t in (self.proj_q(q), self.proj_k(k), self.proj_v(v)))
        return self.proj(vanilla_attention(q, k, v), *residual)


def by_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, seq, heads * size] to [batch, seq, heads, size]."""
    batch, seq, hidden = x.shape()
    return ops.reshape()(x, [batch, seq, heads, hidden / heads])
