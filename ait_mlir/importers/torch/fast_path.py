"""The single operations that PyTorch calls for whole transformer layers in inference, as functions of other operations.

`torch.compile` shows them as one operation each; an export turns them off before it traces a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ait_mlir.importers.torch.library import torch

KEYS = 1
"""The kind of a mask [batch, keys]. Others broadcast with the scores [batch, heads, rows, keys]."""


def attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
    proj_bias: Any, mask: Any = None, need_weights: bool = True, average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`torch._native_multi_head_attention`: the result [batch, rows, width] and the weights, or an empty tensor. True,
    or a number other than 0, in the mask hides a score.
    """
    nn = torch.nn.functional
    if query is key and key is value:
        parts = nn.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        given = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
        parts = [nn.linear(x, weight, bias) for x, weight, bias in given]
    q, k, v = (x.unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2) for x in parts)
    kept = None
    if mask is not None:
        kept = ~mask.to(torch.bool)
        kept = kept[:, None, None] if mask_type == KEYS else kept
    if need_weights:
        scores = (q * (embed_dim // num_head) ** -0.5) @ k.mT
        weights = (scores if kept is None else scores.masked_fill(~kept, -torch.inf)).softmax(-1)
        y = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        weights = query.new_empty(0)
        y = nn.scaled_dot_product_attention(q, k, v, kept)
    return nn.linear(y.transpose(1, 2).flatten(2), proj_weight, proj_bias), weights


def encoder_layer(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any,
    norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    """`torch._transformer_encoder_layer_fwd`: attention and two products, each with a residual and a norm."""
    nn = torch.nn.functional

    def attended(x: Any) -> Any:
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return attention(x, x, x, embed_dim, num_heads, *weights, mask, need_weights=False, mask_type=mask_type)[0]

    def multiplied(x: Any) -> Any:
        y = nn.linear(x, ffn_weight_1, ffn_bias_1)
        return nn.linear(nn.gelu(y) if use_gelu else nn.relu(y), ffn_weight_2, ffn_bias_2)

    x = src
    norms = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    for part, norm in zip((attended, multiplied), norms, strict=True):
        if norm_first:
            x = x + part(nn.layer_norm(x, (embed_dim,), *norm, eps))
        else:
            x = nn.layer_norm(x + part(x), (embed_dim,), *norm, eps)
    return x


OPERATIONS: dict[Any, Callable[..., Any]] = {
    torch._native_multi_head_attention: attention,
    torch._transformer_encoder_layer_fwd: encoder_layer,
}
"""The function for each operation, as graphs of dynamo call it."""
