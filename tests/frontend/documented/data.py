"""Elementwise operators, views, indices, reductions, norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F

from ait_mlir.frontend import Tensor, ops
from ait_mlir.frontend.ops import FuncEnum
from tests.frontend.documented.row import Row

X = "3 x 4 x 6"


def fused(op: Any, x: Tensor, y: Tensor) -> Any:
    add, tanh = ops.elementwise(FuncEnum.ADD), ops.elementwise(FuncEnum.TANH)
    result = tanh(add(x, y))
    return op([add, tanh], [x, y], [result])()


def gated(op: Any, x: Tensor, gamma: Tensor, beta: Tensor) -> Any:
    norm, sigmoid, mul = ops.layernorm([6]), ops.elementwise(FuncEnum.SIGMOID), ops.elementwise(FuncEnum.MUL)
    mul(x, sigmoid(norm(x, gamma, beta)))
    return op(norm, sigmoid, mul)()


def elementwise() -> Iterator[Row]:
    yield Row("elementwise", [X, X], lambda op, x, y: op(FuncEnum.ADD)(x, y), torch.add)
    yield Row("clamp", [X], lambda op, x: op()(x, min_value=-0.5, max_value=0.5), lambda x: x.clamp(-0.5, 0.5))
    yield Row("cast", [X], lambda op, x: op()(x, dtype="float32"), lambda x: x)
    yield Row("identity", [X], lambda op, x: op()(x), lambda x: x)
    for name in ("eq", "ge", "gt", "le", "lt", "ne"):
        yield Row(name, [X, X], lambda op, x, y: op()(x, y), getattr(torch, name))
    yield Row(
        "where",
        ["4 x 6 x bool", "4 x 6", "4 x 6"],
        lambda op, c, x, y: op()(c, input_tensor=x, other_tensor=y),
        torch.where,
    )
    yield Row(
        "full",
        ["4 x 6"],
        lambda op, x: ops.elementwise(FuncEnum.ADD)(x, op()(shape=[4, 6], fill_value=2.0, dtype="float32")),
        lambda x: x + 2,
    )
    yield Row(
        "fused_elementwise",
        ["4 x 6", "4 x 6"],
        fused,
        lambda x, y: torch.tanh(x + y),
    )


def values() -> Iterator[Row]:
    """Dims as values, and tuples of tensors."""
    yield Row(
        "size",
        ["4 x 6"],
        lambda op, x: ops.reshape()(x, [op()(x, dim=1), -1]),
        lambda x: x.reshape(6, 4),
    )
    yield Row(
        "getitem",
        ["4 x 6"],
        lambda op, x: ops.reshape()(x, [op()(ops.size()(x), 1), op()(ops.size()(x), 0)]),
        lambda x: x.reshape(6, 4),
    )
    yield Row(
        "int_elementwise",
        ["4 x 6"],
        lambda op, x: ops.reshape()(x, [op(FuncEnum.MUL)(ops.size()(x, 0), ops.size()(x, 1))]),
        lambda x: x.reshape(24),
    )
    yield Row(
        "list_construct", ["4", "5"], lambda op, x, y: ops.concatenate()(op()(x, y)), lambda x, y: torch.cat([x, y])
    )
    yield Row(
        "tuple_construct", ["4", "5"], lambda op, x, y: ops.concatenate()(op()(x, y)), lambda x, y: torch.cat([x, y])
    )


def views() -> Iterator[Row]:
    yield Row("reshape", [X], lambda op, x: op()(x, [-1, 8]), lambda x: x.reshape(-1, 8))
    yield Row("flatten", [X], lambda op, x: op(start_dim=1, end_dim=-1)(x), lambda x: x.flatten(1))
    yield Row("squeeze", ["3 x 1 x 4"], lambda op, x: op(1)(x), lambda x: x.squeeze(1))
    yield Row("unsqueeze", [X], lambda op, x: op(0)(x), lambda x: x.unsqueeze(0))
    yield Row("permute", [X], lambda op, x: op()(x, [2, 0, -2]), lambda x: x.permute(2, 0, 1))
    yield Row("permute021", [X], lambda op, x: op()(x), lambda x: x.permute(0, 2, 1))
    yield Row("permute0213", ["2 x 3 x 4 x 5"], lambda op, x: op()(x), lambda x: x.permute(0, 2, 1, 3))
    yield Row("permute102", [X], lambda op, x: op()(x), lambda x: x.permute(1, 0, 2))
    yield Row("permute210", [X], lambda op, x: op()(x), lambda x: x.permute(2, 1, 0))
    yield Row("transpose", [X], lambda op, x: op()(x, 0, -1), lambda x: x.transpose(0, -1))
    yield Row("expand", ["1 x 4 x 1"], lambda op, x: op()(x, [3, -1, 5]), lambda x: x.expand(3, 4, 5))
    yield Row("split", ["7 x 4"], lambda op, x: op()(x, 3, dim=0), lambda x: x.split(3))
    yield Row("chunk", ["7 x 4"], lambda op, x: op()(x, 3, dim=0), lambda x: x.chunk(3))
    yield Row(
        "dynamic_slice",
        [X],
        lambda op, x: op()(x, start_indices=[0, 1, -4], end_indices=[None, 3, 6]),
        lambda x: x[:, 1:3, -4:],
    )
    yield Row(
        "concatenate",
        ["3 x 4", "3 x 5"],
        lambda op, x, y: op(fast_cat=True)([x, y], dim=1),
        lambda x, y: torch.cat([x, y], 1),
    )
    yield Row(
        "concatenate_tanh",
        ["3 x 4", "3 x 5"],
        lambda op, x, y: op()([x, y], dim=1),
        lambda x, y: torch.cat([x, y], 1).tanh(),
    )
    yield Row(
        "slice_scatter",
        ["3 x 6", "3 x 8"],
        lambda op, x, y: op(scatter_dim=1)(
            [ops.dynamic_slice()(x, [0, 1], [None, 3]), ops.dynamic_slice()(y, [0, 2], [None, 7])]
        ),
        lambda x, y: torch.cat([x[:, 1:3], y[:, 2:7]], 1),
    )
    yield Row(
        "slice_reshape_scatter",
        ["3 x 6", "3 x 8"],
        lambda op, x, y: op(scatter_dim=1, element_func="tanh")(
            [ops.dynamic_slice()(x, [0, 1], [None, 3]), ops.dynamic_slice()(y, [0, 2], [None, 8])], [3, 4, 2]
        ),
        lambda x, y: torch.cat([x[:, 1:3], y[:, 2:8]], 1).tanh().reshape(3, 4, 2),
    )
    yield Row("pad_last_dim", ["3 x 6"], lambda op, x: op(2, 8)(x), lambda x: F.pad(x, (0, 2)))
    yield Row("nhwc3to4", ["2 x 4 x 5 x 3"], lambda op, x: op()(x), lambda x: F.pad(x, (0, 1)))
    yield Row("nhwc3to8", ["2 x 4 x 5 x 3"], lambda op, x: op()(x), lambda x: F.pad(x, (0, 5)))
    yield Row("ndhwc3to8", ["2 x 2 x 4 x 5 x 3"], lambda op, x: op()(x), lambda x: F.pad(x, (0, 5)))


def indices() -> Iterator[Row]:
    yield Row(
        "batch_gather",
        ["3 x 5 x 4", "3 x 2 x i64 < 5"],
        lambda op, x, i: op()(x, i),
        lambda x, i: torch.stack([row[at] for row, at in zip(x, i, strict=True)]),
    )
    yield Row(
        "gather",
        ["5 x 4", "3 x 4 x i64 < 5"],
        lambda op, x, i: op()(x, 0, i),
        lambda x, i: x.gather(0, i),
    )
    yield Row(
        "index_select",
        ["3 x 5", "4 x i64 < 5"],
        lambda op, x, i: op(dim=1)(x, dim_idxs=i),
        lambda x, i: x.index_select(1, i),
    )
    yield Row("masked_select", ["4 x 6", "4 x 6 x bool"], lambda op, x, m: op()(x, m), torch.masked_select)
    yield Row("argmax", [X], lambda op, x: op(dim=1)(x), lambda x: x.argmax(1))
    yield Row("topk", [X], lambda op, x: op(k=3)(x), lambda x: list(x.topk(3)))
    yield Row(
        "bert_embeddings",
        [*["2 x 5 x i64 < 7"] * 3, *["7 x 8"] * 3, "8", "8"],
        lambda op, *x: op()(*x, 1e-5),
        lambda i, t, p, w, u, v, g, b: F.layer_norm(w[i] + u[t] + v[p], [8], g, b, 1e-5),
    )


def reductions() -> Iterator[Row]:
    for name, function in (("max", torch.amax), ("mean", torch.mean), ("min", torch.amin), ("sum", torch.sum)):
        yield Row(
            f"reduce_{name}",
            [X],
            lambda op, x: op(dim=[0, 2], keepdim=True)(x),
            lambda x, f=function: f(x, (0, 2), keepdim=True),
        )
    yield Row("var", [X], lambda op, x: op(dim=1, unbiased=True, keepdim=True)(x), lambda x: x.var(1, keepdim=True))
    yield Row("vector_norm", [X], lambda op, x: op(ord_kind=2, dim=1)(x), lambda x: x.norm(dim=1))
    yield Row("softmax", [X], lambda op, x: op()(x, dim=-1), lambda x: x.softmax(-1))


def norms() -> Iterator[Row]:
    yield Row(
        "layernorm",
        [X, "6", "6"],
        lambda op, x, g, b: op()(x, g, b, normalized_shape=[6], eps=1e-5),
        lambda x, g, b: F.layer_norm(x, [6], g, b),
    )
    yield Row(
        "layernorm_sigmoid_mul",
        [X, "6", "6"],
        gated,
        lambda x, g, b: x * torch.sigmoid(F.layer_norm(x, [6], g, b)),
    )
    yield Row(
        "batch_layernorm_sigmoid_mul",
        ["3 x 4 x 6", "3 x 6", "3 x 6"],
        lambda op, x, g, b: op(normalized_shape=[6])(x, g, b),
        lambda x, g, b: x * torch.sigmoid(F.layer_norm(x, [6]) * g[:, None] + b[:, None]),
    )
    two = ["3 x 6", "3 x 8", "6", "8", "6", "8"]
    yield Row(
        "group_layernorm",
        two,
        lambda op, x, y, g, h, b, c: op(normalized_shape=[[6], [8]])([x, y], [g, h], [b, c]),
        lambda x, y, g, h, b, c: [F.layer_norm(x, [6], g, b), F.layer_norm(y, [8], h, c)],
    )
    yield Row(
        "group_layernorm_sigmoid_mul",
        two,
        lambda op, x, y, g, h, b, c: op()([x, y], [g, h], [b, c], [[6], [8]]),
        lambda x, y, g, h, b, c: [
            x * torch.sigmoid(F.layer_norm(x, [6], g, b)),
            y * torch.sigmoid(F.layer_norm(y, [8], h, c)),
        ],
    )
    for name, function in (("group_norm", lambda x: x), ("group_norm_swish", F.silu)):
        yield Row(
            name,
            ["2 x 3 x 4 x 8", "8", "8"],
            lambda op, x, g, b: op(num_groups=2, num_channels=8)(x, g, b, eps=1e-5),
            lambda x, g, b, f=function: f(F.group_norm(x.movedim(-1, 1), 2, g, b)).movedim(1, -1),
        )


ROWS = [
    *elementwise(), *values(), *views(), *indices(), *reductions(), *norms(),
]  # fmt: skip
