"""Functions of tensors of PyTorch beside the graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph.experimental.ops import moe_grouped_matmul, scaled_dot_product_attention
from tests.graph.bad_input import Input, NotSupported, raises


def expected(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    padded = torch.nn.functional.pad(x, (weight.shape[1] - 1, 0))
    y = torch.nn.functional.conv1d(padded, weight[:, None], bias, groups=x.shape[1])
    return torch.nn.functional.silu(y) if activation == "silu" else y


@pytest.mark.parametrize(("activation", "has_bias"), [("silu", True), ("identity", False)])
def test_causal_convolution_of_each_channel(activation: str, has_bias: bool):
    x, weight = torch.randn(2, 8, 20), torch.randn(8, 4)
    bias = torch.randn(8) if has_bias else None
    for _ in range(2):  # the second call finds the graph
        y = cudnn.ops.causal_conv1d(x, weight, bias, activation=activation)
        torch.testing.assert_close(y, expected(x, weight, bias, activation), atol=1e-5, rtol=1e-5)
        x = 2 * x


def test_bad_arguments():
    x, weight, bias = torch.randn(2, 8, 20), torch.randn(8, 4), torch.randn(8)
    cases: dict[str, tuple[Any, ...]] = {
        "x is a Tensor of shape [2, 8], expected a torch tensor with 3 dims": (x[:, :, 0], weight, bias),
        "weight is a Tensor of shape [7, 4], but x has 8 channels": (x, weight[:7], bias),
        "bias is a int": (x, weight, 3),
        "activation is 'relu', expected one of silu, identity": (x, weight, bias, "relu"),
    }
    for words, arguments in cases.items():
        with raises(Input, words):
            cudnn.ops.causal_conv1d(*arguments)
    with raises(NotSupported, "no gradient"):
        cudnn.ops.causal_conv1d(x.requires_grad_(), weight)


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_attention_as_an_operator(device: str):
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (torch.randn(2, h, n, d, device=device) for h, n, d in ((4, 8, 16), (2, 24, 16), (2, 24, 8)))
    want = attend(q, k, v, is_causal=True, enable_gqa=True)
    ours = scaled_dot_product_attention
    compiled: Any = torch.compile(ours, backend="aot_eager", fullgraph=True)  # pyright: ignore[reportUnknownMemberType]
    for function in (ours, compiled):
        got = function(q, k, v, is_causal=True, enable_gqa=True)
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
    rows, columns = (torch.tensor(n, dtype=torch.int32, device=device).reshape(2, 1, 1, 1) for n in ([5, 8], [9, 24]))
    got = scaled_dot_product_attention(
        q, k, v, scale=0.5, enable_gqa=True, diagonal_alignment=1, right_bound=0, seq_len_q=rows, seq_len_kv=columns
    )
    for i, (m, n) in enumerate(((5, 9), (8, 24))):
        seen = torch.ones(m, n, dtype=torch.bool, device=device).tril(n - m)
        one = attend(q[i : i + 1, :, :m], k[i : i + 1, :, :n], v[i : i + 1, :, :n], seen, scale=0.5, enable_gqa=True)
        torch.testing.assert_close(got[i : i + 1, :, :m], one, atol=1e-4, rtol=1e-4)
    q, k, v = (torch.randn(16, 2, 16, device=device) for _ in range(3))  # 5 and 8 rows, and 3 more
    a, b, c = (t.as_strided((2, 2, 8, 16), (256, 16, 32, 1)) for t in (q, k, v))
    ends = torch.tensor([0, 5, 13], dtype=torch.int32, device=device).reshape(3, 1, 1, 1)
    packed: dict[str, Any] = {"seq_len_q": rows, "seq_len_kv": rows}
    packed |= {"cumulative_seq_len_q": 32 * ends, "cumulative_seq_len_kv": 32 * ends}
    got = scaled_dot_product_attention(a, b, c, **packed)
    for start, end in ((0, 5), (5, 13)):
        a, b, c = (t[start:end].transpose(0, 1) for t in (q, k, v))
        one = attend(a, b, c).transpose(0, 1)
        torch.testing.assert_close(got.as_strided((16, 2, 16), (32, 16, 1))[start:end], one, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_experts_as_an_operator(device: str):
    token, weight = torch.randn(1, 12, 8, device=device), torch.randn(3, 16, 8, device=device).mT
    first = torch.tensor([0, 5, 5], dtype=torch.int32, device=device).reshape(3, 1, 1)
    want = torch.cat([token[0, :5] @ weight[0], token[0, 5:] @ weight[2]])[None]
    torch.testing.assert_close(moe_grouped_matmul(token, weight, first), want, atol=1e-4, rtol=1e-4)
    index = torch.randint(12, (1, 12, 1), dtype=torch.int32, device=device)
    got = moe_grouped_matmul(token, weight, first, index, mode="gather")
    picked = token[0, index.flatten().long()]
    want = torch.cat([picked[:5] @ weight[0], picked[5:] @ weight[2]])[None]
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_bad_arguments_of_operators():
    q, k, first = torch.randn(1, 4, 8, 16), torch.randn(1, 2, 8, 16), torch.zeros(2, 1, 1, dtype=torch.int32)
    named: dict[str, Any]
    for words, named in {
        "attn_mask is not supported": {"attn_mask": torch.ones(8, 8)},
        "dropout_p is 0.1": {"dropout_p": 0.1},
    }.items():
        with pytest.raises(NotImplementedError, match=words):
            scaled_dot_product_attention(q, q, q, **named)
    with raises(Input, "query has 4 heads and key 2: enable_gqa=True"):
        scaled_dot_product_attention(q, k, k)
    with raises(Input, "key has shape [4, 8, 16], expected [batch, heads, rows, size]"):
        scaled_dot_product_attention(q, q[0], q)
    with raises(Input, "diagonal_alignment is 2, expected 0 or 1"):
        scaled_dot_product_attention(q, q, q, diagonal_alignment=2)
    with raises(Input, "query has 16 elements in a row and value 8, but cumulative_seq_len_q"):
        scaled_dot_product_attention(q, q, q[..., :8], cumulative_seq_len_q=first)
    with raises(NotSupported, "no gradient"):
        scaled_dot_product_attention(q.clone().requires_grad_(), q, q)
    token, weight = torch.randn(1, 4, 8), torch.randn(2, 8, 8)
    arguments: tuple[Any, ...]
    for words, arguments in {
        "mode is 'all', expected one of none, gather, scatter": (token, weight, first, None, None, "all"),
        "mode 'gather' needs token_index": (token, weight, first, None, None, "gather"),
        "mode 'scatter' needs token_ks": (token, weight, first, first, None, "scatter"),
        "weight has shape [8, 8], expected three dims": (token, weight[0], first),
    }.items():
        with raises(Input, words):
            moe_grouped_matmul(*arguments)
    with raises(NotSupported, "no gradient"):
        moe_grouped_matmul(token.requires_grad_(), weight, first)
