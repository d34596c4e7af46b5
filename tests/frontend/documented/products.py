"""Matrix products and their epilogues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F

from ait_mlir.frontend import ops
from tests.frontend.documented.row import Row

X, W, V, BIAS, D = "4 x 8", "6 x 8", "8 x 6", "6", "4 x 6"


def _turned(x: torch.Tensor, letter: str) -> torch.Tensor:
    return x.mT if letter == "c" else x


def batched() -> Iterator[Row]:
    """A is row-major [b, m, k] or column-major [b, k, m]; so are B [b, k, n] and C [b, m, n]."""
    for a in "rc":
        for b in "rc":
            for c in "rc":
                shapes = ["2 x 4 x 8" if a == "r" else "2 x 8 x 4", "2 x 8 x 6" if b == "r" else "2 x 6 x 8"]
                result = "2 x 4 x 6" if c == "r" else "2 x 6 x 4"

                def product(x: Any, y: Any, a: str = a, b: str = b, c: str = c) -> Any:
                    return _turned(_turned(x, a) @ _turned(y, b), c)

                yield Row(f"bmm_{a}{b}{c}", shapes, lambda op, x, y: op()(x, y), product)
                yield Row(
                    f"bmm_{a}{b}{c}_add",
                    [*shapes, result],
                    lambda op, x, y, d: op()(x, y, d),
                    lambda x, y, d, product=product: product(x, y) + d,
                )


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "fast_gelu": lambda x: F.gelu(x, approximate="tanh"),
    "swish": F.silu,
    "hardswish": F.hardswish,
}
BROADCAST: dict[str, Callable[..., Any]] = {
    "add": lambda y, d: y + d,
    "add_relu": lambda y, d: torch.relu(y + d),
    "mul": lambda y, d: y * d,
    "mul_tanh": lambda y, d: torch.tanh(y * d),
    "sigmoid_mul": lambda y, d: torch.sigmoid(y) * d,
    "sigmoid_mul_tanh": lambda y, d: torch.tanh(torch.sigmoid(y) * d),
}
BROADCAST_TWO: dict[str, Callable[..., Any]] = {
    "add_add": lambda y, d, e: y + d + e,
    "add_add_relu": lambda y, d, e: torch.relu(y + d + e),
    "mul_add": lambda y, d, e: y * d + e,
}


def _split(y: Any, t1: int, t2: int, t3: int) -> Any:
    """The layout 20314: m = m0 * t1, n = t2 * t3 * n0, as [t2, m0, t3, t1, n0]."""
    m, n = y.shape
    return y.reshape(m // t1, t1, t2, t3, n // t2 // t3).permute(2, 0, 3, 1, 4)


def _heads(y: Any, t: int) -> Any:
    """The layout 0213: [b, m, n] as [b / t, m, t, n]."""
    b, m, n = y.shape
    return y.reshape(b // t, t, m, n).permute(0, 2, 1, 3)


def plain() -> Iterator[Row]:
    yield Row("gemm_rcr", [X, W], lambda op, x, w: op()(x, w), lambda x, w: x @ w.T)
    yield Row("gemm_rrr", [X, V], lambda op, x, w: op()(x, w), lambda x, w: x @ w)
    yield Row("gemm_rcr_bias", [X, W, BIAS], lambda op, x, w, b: op()(x, w, bias=b), lambda x, w, b: x @ w.T + b)
    yield Row("gemm_rrr_bias", [X, V, BIAS], lambda op, x, w, b: op()(x, w, bias=b), lambda x, w, b: x @ w + b)
    yield Row(
        "gemm_rcr_fast_gelu", [X, W], lambda op, x, w: op()(x, w), lambda x, w: F.gelu(x @ w.T, approximate="tanh")
    )
    for name, function in ACTIVATIONS.items():
        yield Row(
            f"gemm_rcr_bias_{name}",
            [X, W, BIAS],
            lambda op, x, w, b: op()(x, w, b),
            lambda x, w, b, f=function: f(x @ w.T + b),
        )
    for name, function in BROADCAST.items():
        yield Row(
            f"gemm_rcr_bias_{name}",
            [X, W, BIAS, D],
            lambda op, x, w, b, d: op()(x, w, bias=b, d0=d),
            lambda x, w, b, d, f=function: f(x @ w.T + b, d),
        )
    for name, function in BROADCAST_TWO.items():
        yield Row(
            f"gemm_rcr_bias_{name}",
            [X, W, BIAS, D, D],
            lambda op, x, w, b, d, e: op()(x, w, bias=b, d0=d, d1=e),
            lambda x, w, b, d, e, f=function: f(x @ w.T + b, d, e),
        )


def permuted() -> Iterator[Row]:
    shape, x, w, v, b = (2, 3, 2), "4 x 8", "12 x 8", "8 x 12", "12"
    yield Row(
        "gemm_rcr_permute",
        [x, w],
        lambda op, x, w: op(shape=shape, layout="20314")(x, w),
        lambda x, w: _split(x @ w.T, *shape),
    )
    yield Row(
        "gemm_rcr_permute_elup1",
        [x, w],
        lambda op, x, w: op(shape=shape, layout="20314")(x, w),
        lambda x, w: _split(F.elu(x @ w.T) + 1, *shape),
    )
    yield Row(
        "gemm_rcr_bias_permute",
        [x, w, b],
        lambda op, x, w, b: op(shape=shape, layout="20314")(x, w, bias=b),
        lambda x, w, b: _split(x @ w.T + b, *shape),
    )
    yield Row("gemm_rrr_permute", [x, v], lambda op, x, w: op(shape=shape)(x, w), lambda x, w: _split(x @ w, *shape))
    yield Row(
        "gemm_rrr_bias_permute",
        [x, v, b],
        lambda op, x, w, b: op(shape=shape)(x, w, bias=b),
        lambda x, w, b: _split(x @ w + b, *shape),
    )
    yield Row(
        "bmm_rcr_permute",
        ["6 x 4 x 8", "6 x 5 x 8"],
        lambda op, x, y: op(shape=(3,), layout="0213")(x, y),
        lambda x, y: _heads(x @ y.mT, 3),
    )
    yield Row(
        "bmm_rrr_permute",
        ["6 x 4 x 8", "6 x 8 x 5"],
        lambda op, x, y: op(shape=(3,), layout="0213")(x, y),
        lambda x, y: _heads(x @ y, 3),
    )
    a, rows, columns, bias = "4 x 2 x 8", "2 x 8 x 6", "2 x 6 x 8", "2 x 6"
    yield Row(
        "perm102_bmm_rcr", [a, columns], lambda op, x, y: op()(x, y), lambda x, y: torch.einsum("mbk,bnk->mbn", x, y)
    )
    yield Row(
        "perm102_bmm_rcr_bias",
        [a, columns, bias],
        lambda op, x, y, b: op()(x, y, bias=b),
        lambda x, y, b: torch.einsum("mbk,bnk->mbn", x, y) + b,
    )
    yield Row(
        "perm102_bmm_rrr", [a, rows], lambda op, x, y: op()(x, y), lambda x, y: torch.einsum("mbk,bkn->mbn", x, y)
    )
    yield Row(
        "perm102_bmm_rrr_bias",
        [a, rows, bias],
        lambda op, x, y, b: op()(x, y, bias=b),
        lambda x, y, b: torch.einsum("mbk,bkn->mbn", x, y) + b,
    )
    # A[1, k, m] and B[b, k, n] (crc) or B[b, n, k] (ccr); C[b, m, n]
    left, ccr, crc, bias = "1 x 8 x 4", "2 x 6 x 8", "2 x 8 x 6", "6"
    yield Row("perm021fc_ccr", [left, ccr], lambda op, x, y: op()(x, y), lambda x, y: x.mT @ y.mT)
    yield Row(
        "perm021fc_ccr_bias",
        [left, ccr, bias],
        lambda op, x, y, b: op()(x, y, bias=b),
        lambda x, y, b: x.mT @ y.mT + b,
    )
    yield Row(
        "perm021fc_ccr_bias_permute",
        [left, ccr, bias],
        lambda op, x, y, b: op(layout="021")(x, y, bias=b),
        lambda x, y, b: (x.mT @ y.mT + b).mT,
    )
    yield Row("perm021fc_crc", [left, crc], lambda op, x, y: op()(x, y), lambda x, y: (x.mT @ y).mT)
    yield Row(
        "perm021fc_crc_bias",
        [crc, left, bias],
        lambda op, w, x, b: op()(w, x, bias=b),
        lambda w, x, b: (w.mT @ x).mT + b,
    )


def special() -> Iterator[Row]:
    yield Row("gemm_rrr_small_nk", ["9 x 6", "6 x 3"], lambda op, x, w: op()(x, w), lambda x, w: x @ w)
    yield Row(
        "bmm_rcr_n1",
        ["2 x 4 x 8", "2 x 1 x 8"],
        lambda op, x, y: op()(x, y, alpha=0.5),
        lambda x, y: 0.5 * (x @ y.mT),
    )
    yield Row(
        "bmm_rrr_k1_tanh",
        ["2 x 4 x 1", "2 x 1 x 6"],
        lambda op, x, y: op()(x, y),
        lambda x, y: torch.tanh(x @ y),
    )
    yield Row("gemm_rcr_softmax", [X, W], lambda op, x, w: op()(x, w), lambda x, w: (x @ w.T).softmax(-1))
    yield Row(
        "gemm_rcr_bias_softmax",
        [X, W, BIAS],
        lambda op, x, w, b: op()(x, w, bias=b),
        lambda x, w, b: (x @ w.T + b).softmax(-1),
    )
    yield Row(
        "bmm_rcr_softmax",
        ["2 x 4 x 8", "2 x 6 x 8"],
        lambda op, x, y: op()(x, y),
        lambda x, y: (x @ y.mT).softmax(-1),
    )
    yield Row(
        "dual_gemm_rcr_silu",
        [X, W, W],
        lambda op, x, w, v: op()(x, w, bias=v),
        lambda x, w, v: F.silu(x @ w.T) * (x @ v.T),
    )
    yield Row(
        "dual_gemm_rcr_fast_gelu",
        [X, W, W],
        lambda op, x, w, v: op()(x, w, bias=v),
        lambda x, w, v: F.gelu(x @ w.T, approximate="tanh") * (x @ v.T),
    )
    yield Row(
        "dual_bmm_rrr_div",
        ["2 x 4 x 8", "2 x 8 x 6", "2 x 8 x 6"],
        lambda op, x, y, z: op()(x, y, bias=z),
        lambda x, y, z: (x @ y) / (x @ z),
    )


def grouped() -> Iterator[Row]:
    groups = [X, W, "5 x 16", "3 x 16"]
    biased = [X, W, BIAS, "5 x 16", "3 x 16", "3"]
    yield Row(
        "group_gemm_rcr",
        groups,
        lambda op, x, w, y, v: op()([[x, w], [y, v]]),
        lambda x, w, y, v: [x @ w.T, y @ v.T],
    )
    for suffix, function in (("", lambda x: x), ("_relu", torch.relu), ("_sigmoid", torch.sigmoid)):
        yield Row(
            f"group_gemm_rcr_bias{suffix}",
            biased,
            lambda op, x, w, b, y, v, c: op()([[x, w, b], [y, v, c]]),
            lambda x, w, b, y, v, c, f=function: [f(x @ w.T + b), f(y @ v.T + c)],
        )


def back_to_back() -> Iterator[Row]:
    """Two products with a function between: scores are alpha0 * q k^T + bias, results alpha1 * f(scores) v."""
    q, k, v, bias = "2 x 8 x 16", "2 x 8 x 16", "2 x 8 x 16", "2 x 8 x 8"
    lower, upper = torch.ones(8, 8).tril(), torch.ones(8, 8).triu()
    yield Row(
        "bmm_softmax_bmm",
        [q, k, v],
        lambda op, q, k, v: op(scale=0.25)(q, k, v),
        lambda q, k, v: (0.25 * (q @ k.mT)).softmax(-1) @ v,
    )
    yield Row(
        "bmm_softmax_bmm_permute",
        ["4 x 8 x 16"] * 3,
        lambda op, q, k, v: op(shape=(2,), scale=0.25, causal=False, layout="0213")(q, k, v),
        lambda q, k, v: _heads((0.25 * (q @ k.mT)).softmax(-1) @ v, 2),
    )
    yield Row(
        "classic_b2b_bmm",
        [q, k, v, bias],
        lambda op, q, k, v, b: op(ops.CausalType.UPPER_RIGHT_EMPTY, "Sigmoid", 0.5, 0.125)(q, k, v, b),
        lambda q, k, v, b: 0.125 * (torch.sigmoid(0.5 * (q @ k.mT) + b) * lower) @ v,
    )
    heads, scores = "2 x 8 x 3 x 16", "2 x 3 x 8 x 8"  # [batch, rows, heads, width]
    yield Row(
        "fmha_style_b2b_bmm",
        [heads, heads, heads, scores],
        lambda op, q, k, v, b: op(ops.CausalType.LOWER_LEFT_EMPTY, "Sigmoid", 0.5, 0.125)(q, k, v, b),
        lambda q, k, v, b: torch.einsum(
            "bhmn,bnhd->bmhd", 0.125 * torch.sigmoid(0.5 * torch.einsum("bmhd,bnhd->bhmn", q, k) + b) * upper, v
        ),
    )


ROWS = [*batched(), *plain(), *permuted(), *special(), *grouped(), *back_to_back()]
