"""Attention of q [batch, heads, rows, size] with k and v, as one operator of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import torch

from ait_mlir.errors import InputError
from ait_mlir.graph.decorators import graph_cache
from ait_mlir.graph.enums import diagonal_alignment as alignments
from ait_mlir.graph.experimental.ops.running import declare, lies, new_graph, refuse_gradients, run
from ait_mlir.graph.pygraph import pygraph

SCHEMA = (
    "(Tensor query, Tensor key, Tensor value, float scale, int alignment, int left, int right, "
    "Tensor? seq_len_q, Tensor? seq_len_kv, Tensor? offsets_q, Tensor? offsets_kv) -> Tensor"
)
"""A bound below 0 is none."""


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    diagonal_alignment: int = 0,
    left_bound: int = -1,
    right_bound: int = -1,
    seq_len_q: torch.Tensor | None = None,
    seq_len_kv: torch.Tensor | None = None,
    cumulative_seq_len_q: torch.Tensor | None = None,
    cumulative_seq_len_kv: torch.Tensor | None = None,
) -> torch.Tensor:
    """`torch.nn.functional.scaled_dot_product_attention` by the graph operation `sdpa`: [batch, heads, rows, v's size].

    `diagonal_alignment` is 0 for the top left corner and 1 for the bottom right one. The bounds are those of the band
    around that diagonal, -1 for none; `is_causal` is a right bound of 0. The lengths are int32 [batch, 1, 1, 1], the
    cumulative ones are ragged offsets, int32 [batch + 1, 1, 1, 1]. With those of q, which are also the result's, the
    memory of the result holds the packed rows [batch * rows, heads, size], of which the last ones are not written.

    Raises `NotImplementedError` for a mask and for dropout, `ValueError` for shapes that do not fit or for heads of k
    that are not those of q without `enable_gqa`, and `cudnnGraphNotSupportedError` where a gradient is needed.
    """
    if attn_mask is not None:
        raise NotImplementedError("scaled_dot_product_attention: attn_mask is not supported: build a graph with bias=")
    if dropout_p:
        raise NotImplementedError(f"scaled_dot_product_attention: dropout_p is {dropout_p}, expected 0")
    for name, given in (("query", query), ("key", key), ("value", value)):
        if given.dim() != 4:
            raise InputError(
                f"scaled_dot_product_attention: {name} has shape {list(given.shape)}, "
                "expected [batch, heads, rows, size]"
            )
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise InputError(
            f"scaled_dot_product_attention: query has {query.shape[1]} heads and key {key.shape[1]}: "
            "enable_gqa=True shares the heads of key"
        )
    if diagonal_alignment not in (0, 1):
        raise InputError(f"scaled_dot_product_attention: diagonal_alignment is {diagonal_alignment}, expected 0 or 1")
    if cumulative_seq_len_q is not None and query.shape[3] != value.shape[3]:
        raise InputError(
            f"scaled_dot_product_attention: query has {query.shape[3]} elements in a row and value {value.shape[3]}, "
            "but cumulative_seq_len_q has the offsets of both query and the result"
        )
    refuse_gradients("scaled_dot_product_attention", query, key, value)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    right = 0 if is_causal and right_bound < 0 else right_bound
    lengths = seq_len_q, seq_len_kv, cumulative_seq_len_q, cumulative_seq_len_kv
    return OPERATOR(query, key, value, scale, diagonal_alignment, left_bound, right, *lengths)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    alignment: int,
    left: int,
    right: int,
    seq_len_q: torch.Tensor | None,
    seq_len_kv: torch.Tensor | None,
    offsets_q: torch.Tensor | None,
    offsets_kv: torch.Tensor | None,
) -> torch.Tensor:
    given = {"q": query.detach(), "k": key.detach(), "v": value.detach()}
    more = {"seq_len_q": seq_len_q, "seq_len_kv": seq_len_kv, "offsets_q": offsets_q, "offsets_kv": offsets_kv}
    graph = _graph({**given, **more}, scale, alignment, left, right)
    return run(graph, {**given, **more}, _result(query, value, offsets_q), "o")


def _result(query: torch.Tensor, value: torch.Tensor, offsets: torch.Tensor | None) -> torch.Tensor:
    batch, heads, rows, _ = query.shape
    if offsets is not None:
        return query.new_empty((batch, rows, heads, value.shape[3])).transpose(1, 2)
    return query.new_empty((batch, heads, rows, value.shape[3]))


def _fake(*given: Any) -> torch.Tensor:
    return _result(given[0], given[2], given[-2])


OPERATOR: Any = torch.library.custom_op("ait_graph::sdpa", _attention, mutates_args=(), schema=SCHEMA)
OPERATOR.register_fake(_fake)


def _key(given: dict[str, torch.Tensor | None], *settings: float) -> Hashable:
    return tuple(lies(t) for t in given.values()), settings


@graph_cache(key_fn=_key)
def _graph(given: dict[str, torch.Tensor | None], scale: float, alignment: int, left: int, right: int) -> pygraph:
    query, value = given["q"], given["v"]
    assert query is not None and value is not None
    graph: Any = new_graph(query)
    named = declare(graph, given)
    q, k, v, seq_len_q, seq_len_kv, offsets_q, offsets_kv = named.values()
    assert q is not None and k is not None and v is not None
    for jagged, offsets in ((q, offsets_q), (k, offsets_kv), (v, offsets_kv)):
        if offsets is not None:
            jagged.set_ragged_offset(offsets)
    o, _ = graph.sdpa(
        name="sdpa",
        q=q,
        k=k,
        v=v,
        generate_stats=False,
        attn_scale=scale,
        use_padding_mask=seq_len_q is not None or seq_len_kv is not None,
        seq_len_q=seq_len_q,
        seq_len_kv=seq_len_kv,
        diagonal_alignment=alignments.BOTTOM_RIGHT if alignment else alignments.TOP_LEFT,
        diagonal_band_left_bound=left if left >= 0 else None,
        diagonal_band_right_bound=right if right >= 0 else None,
    )
    result = _result(query.to("meta"), value, given["offsets_q"])
    o.set_name("o").set_output(True).set_dim(list(result.shape)).set_stride(list(result.stride()))
    o.set_data_type(query.dtype)
    if offsets_q is not None:
        o.set_ragged_offset(offsets_q)
    graph.build()
    return graph
