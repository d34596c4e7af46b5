"""Operators on sequences of their own lengths: jagged tensors, and attention over them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch.nn import functional as F

from ait_mlir.frontend import JaggedDim, Tensor, ops
from tests.frontend.documented.row import Row

OFFSETS, LONGEST = [0, 2, 2, 5], 3
DIMS = {"total": 5}
ROWS_OF = torch.tensor([0, 0, 2, 2, 2]), torch.tensor([0, 1, 0, 1, 2])
"""Where each of the rows is in a padded tensor: the sequence and the place in it."""


def jagged(x: Tensor, offsets: Tensor, make: Any = None) -> Tensor:
    """`x` [total, ...] as sequences; the last offset is not one of the batch."""
    batch = offsets.shape()[0] - 1
    return (make or ops.make_jagged)(batch_dim=batch, jagged_dims=[JaggedDim(0, LONGEST)])(x, [offsets])


def padded(x: torch.Tensor, value: float = 0.0) -> torch.Tensor:
    dense = torch.full((3, LONGEST, *x.shape[1:]), value, dtype=x.dtype)
    dense[ROWS_OF] = x
    return dense


def conversions() -> Iterator[Row]:
    inputs, given = ["total x 4", "4 x i32"], {1: OFFSETS}
    yield Row(
        "make_jagged",
        inputs,
        lambda op, x, o: ops.elementwise(ops.FuncEnum.ADD)(jagged(x, o, op), jagged(x, o, op)),
        lambda x, o: x + x,
        given,
        DIMS,
    )
    yield Row(
        "jagged_to_padded_dense",
        inputs,
        lambda op, x, o: op(padding_value=-1.5)(jagged(x, o)),
        lambda x, o: padded(x, -1.5),
        given,
        DIMS,
    )
    yield Row(
        "padded_dense_to_jagged",
        ["3 x 3 x 4", "4 x i32", "total x 4"],
        lambda op, x, o, like: ops.elementwise(ops.FuncEnum.ADD)(
            op(total_length=like.shape()[0])(x, [o]), op(total_length=like.shape()[0])(x, [o])
        ),
        lambda x, o, like: 2 * x[ROWS_OF],
        given,
        DIMS,
    )
    lengths = {0: [2, 0, 3]}
    yield Row(
        "jagged_lengths_to_offsets",
        ["3 x i32"],
        lambda op, n: op()(n),
        lambda n: torch.cat([torch.zeros(1, dtype=n.dtype), n.cumsum(0, dtype=n.dtype)]),
        lengths,
    )
    yield Row(
        "jagged_lengths_to_presences",
        ["3 x i32"],
        lambda op, n: op()(n, max_seq_len=4, dtype="bool"),
        lambda n: torch.arange(4) < n[:, None],
        lengths,
    )
    yield Row(
        "batched_dense_vec_jagged_2d_mul",
        ["3 x 2 x 3", "total x 2 x 4", "4 x i32"],
        lambda op, v, m, o: op()(v, jagged(m, o)),
        lambda v, m, o: torch.einsum("bhn,bnhd->bhd", v, padded(m)),
        {2: OFFSETS},
        DIMS,
    )


def back_to_back() -> Iterator[Row]:
    """Attention with another function than softmax, of sequences laid end to end [total, heads, width]."""
    inputs = [*["total x 2 x 8"] * 3, "3 x 2 x 3 x 3", "4 x i32"]

    def want(q: Any, k: Any, v: Any, bias: Any, _: Any) -> Any:
        q, k, v = padded(q), padded(k), padded(v)
        scores = 0.125 * torch.sigmoid(0.5 * torch.einsum("bmhd,bnhd->bhmn", q, k) + bias)
        return torch.einsum("bhmn,bnhd->bmhd", scores * torch.ones(3, 3).tril(), v)[ROWS_OF]

    for name in ("classic", "fmha_style"):
        yield Row(
            f"grouped_{name}_b2b_bmm",
            inputs,
            lambda op, q, k, v, b, o: op(ops.CausalType.UPPER_RIGHT_EMPTY, "Sigmoid", 0.5, 0.125)(
                jagged(q, o), jagged(k, o), jagged(v, o), b
            ),
            want,
            {4: OFFSETS},
            DIMS,
        )


def attentions() -> Iterator[Row]:
    q, kv = "2 x 3 x 4 x 8", "2 x 3 x 5 x 8"  # [batch, heads, rows, width]
    yield Row(
        "mem_eff_attention",
        [q, kv, kv],
        lambda op, q, k, v: op(causal=False)(q, k, v),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v).transpose(1, 2),
    )

    def flash(qkv: Any, ends: Any) -> Any:
        made = [
            F.scaled_dot_product_attention(*qkv[a:b].permute(1, 2, 0, 3), is_causal=True).transpose(0, 1)
            for a, b in pairwise(ends.tolist())
        ]
        return torch.cat(made)

    yield Row(
        "flash_attention",
        ["5 x 3 x 2 x 8", "4 x i32"],
        lambda op, x, ends: op(batch_size=3, dropout=0.0, max_seq_len=3, causal=True)(x, ends),
        flash,
        {1: OFFSETS},
    )


ROWS = [*conversions(), *back_to_back(), *attentions()]
