"""Writes `nn.MultiheadAttention` with the heads as a dim of their own while `torch.export` traces a model.

PyTorch puts the length before the batch and merges batch and heads, each time with a copy. Here the batch stays where
the caller has it, and attention reads the heads where the product has written them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

from ait_mlir.importers.torch.library import torch

_BATCH_FIRST: ContextVar[bool] = ContextVar("_BATCH_FIRST", default=False)
"""Whether the layer that is being called has the batch first."""


@contextlib.contextmanager
def heads_apart() -> Generator[None]:
    """A context in which `nn.MultiheadAttention` calls the function of this file where its arguments allow it."""
    functional, layer = torch.nn.functional, torch.nn.MultiheadAttention
    whole, call = functional.multi_head_attention_forward, layer.forward

    @functools.wraps(call)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _BATCH_FIRST.set(self.batch_first)
        try:
            return call(self, *args, **kwargs)
        finally:
            _BATCH_FIRST.reset(token)

    functional.multi_head_attention_forward, layer.forward = _of_heads(whole), forward
    try:
        yield
    finally:
        functional.multi_head_attention_forward, layer.forward = whole, call


def _of_heads(whole: Callable[..., Any]) -> Callable[..., Any]:
    """A replacement for `multi_head_attention_forward`. It calls `whole` for cases that this file does not write: rows
    added to keys and values, given keys, dropout, and a causal mask that is only a hint.
    """

    names = list(inspect.signature(whole).parameters)

    @functools.wraps(whole)
    def forward(
        query: Any, key: Any, value: Any, width: int, heads: int, weight: Any, bias: Any, bias_k: Any, bias_v: Any,
        zero: bool, dropout: float, out_weight: Any, out_bias: Any, training: bool = True, *others: Any,
        **rest: Any,
    ) -> Any:  # fmt: skip
        rest |= zip(names[names.index("training") + 1 :], others, strict=False)
        given = (bias_k, bias_v, rest.get("static_k"), rest.get("static_v"))
        hint = rest.get("is_causal", False) and rest.get("attn_mask") is None
        if zero or training or hint or any(x is not None for x in given) or query.shape[-1] != width:
            arguments = (query, key, value, width, heads, weight, bias, bias_k, bias_v, zero, dropout, out_weight)
            return whole(*arguments, out_bias, training, **rest)
        parts = [rest.get(f"{name}_proj_weight") for name in "qkv"] if rest.get("use_separate_proj_weight") else None
        return _attention(query, key, value, heads, (weight, bias, parts), (out_weight, out_bias), **rest)

    return forward


def _attention(
    query: Any,
    key: Any,
    value: Any,
    heads: int,
    weights: tuple[Any, Any, Any],
    out: tuple[Any, Any],
    need_weights: bool = True,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    key_padding_mask: Any = None,
    attn_mask: Any = None,
    **_: Any,
) -> tuple[Any, Any]:
    """The result [length, batch, width], or [length, width] as the query, and the weights or None."""
    nn = torch.nn.functional
    batched = query.dim() == 3
    first = batched and _BATCH_FIRST.get()
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = None if causal else _mask(query.dtype, heads, attn_mask, key_padding_mask)
    order = (0, 2, 1, 3) if first else (1, 2, 0, 3)
    q, k, v = (
        x.unflatten(-1, (heads, x.shape[-1] // heads)).permute(order)
        for x in _projected(
            query, key, value, weights, lambda x: x.transpose(0, 1) if first else x if batched else x.unsqueeze(1)
        )
    )
    found = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.mT
        found = (scores if mask is None else scores + mask).softmax(-1)
        y = found @ v
        found = found.mean(1) if average_attn_weights else found
    else:
        y = nn.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
    y = nn.linear((y.transpose(1, 2) if first else y.permute(2, 0, 1, 3)).flatten(2), *out)
    if batched:
        return y.transpose(0, 1) if first else y, found
    return y.squeeze(1), None if found is None else found.squeeze(0)


def _projected(query: Any, key: Any, value: Any, weights: tuple[Any, Any, Any], turned: Callable[[Any], Any]) -> Any:
    """The projections of query, key and value, `turned`; one product if the three are the same tensor."""
    linear, (weight, bias, parts) = torch.nn.functional.linear, weights
    if parts is None and query is key and key is value:
        return linear(turned(query), weight, bias).chunk(3, -1)
    parts = weight.chunk(3) if parts is None else parts
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return [linear(turned(x), w, b) for x, w, b in zip((query, key, value), parts, biases, strict=True)]


def _mask(dtype: Any, heads: int, mask: Any, padding: Any) -> Any:
    """The mask to add to the scores [batch, heads, rows, columns]: the sum of a mask [rows, columns] or [batch * heads,
    rows, columns] and of a mask of keys, [batch, columns] or [columns]. True in a boolean mask hides a score.
    """

    def added(x: Any) -> Any:
        return torch.zeros_like(x, dtype=dtype).masked_fill(x, float("-inf")) if x.dtype == torch.bool else x

    if mask is not None:
        mask = added(mask)
        mask = mask if mask.dim() == 2 else mask.unflatten(0, (mask.shape[0] // heads, heads))
    if padding is None:
        return mask
    padding = added(padding).reshape(-1, 1, 1, padding.shape[-1])
    return padding if mask is None else mask + padding
