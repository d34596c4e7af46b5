"""However a network spells what it does to its scores, one attention comes out, and nothing else of their size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.driver import run_to_phase
from ait_mlir.importers.torch import from_torch
from ait_mlir.reference.graph import evaluate_graph

HEADS, WIDTH, ROWS = 4, 16, 12
Tensor = torch.Tensor


def softmax_then(scores: Tensor, v: Tensor) -> Tensor:
    return F.softmax(scores.float(), dim=-1).type_as(scores) @ v


class T5(nn.Module):
    """A table of buckets of distances, with a mask added to it, as T5 has it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(8, HEADS)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
        bias = self.table((columns - rows).abs().clamp(max=7)).permute(2, 0, 1)[None]
        mask = (1.0 - seen[:, None, None].to(q.dtype)) * -1e4
        return softmax_then(q @ k.transpose(2, 3) + (bias + mask), v)


def bloom_slopes() -> Tensor:
    return torch.tensor([2.0 ** (-2.0 * (i + 1)) for i in range(HEADS)])


class Bloom(nn.Module):
    """Slopes times how many tokens were seen, added by baddbmm; the mask is filled in."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        b, h, s, d = q.shape
        place = (seen.cumsum(-1) - 1) * seen
        alibi = (bloom_slopes()[:, None].to(q.dtype) * place[:, None].to(q.dtype)).reshape(b * h, 1, s)
        q, k, v = (x.reshape(b * h, s, d) for x in (q, k, v))
        scores = alibi.baddbmm(q, k.transpose(1, 2), beta=1.0, alpha=1 / math.sqrt(d)).view(b, h, s, s)
        hidden = torch.ones(s, s, dtype=torch.bool).triu(1)[None, None]
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        return softmax_then(scores, v.view(b, h, s, d))


class Mpt(nn.Module):
    """A bias of slopes and distances, added; the triangle is filled in."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        s = q.shape[2]
        bias = torch.arange(1 - s, 1).view(1, 1, 1, s) * bloom_slopes().view(1, HEADS, 1, 1)
        scores = q @ k.transpose(2, 3) * WIDTH**-0.5 + bias.to(q.dtype)
        hidden = torch.ones(s, s, dtype=torch.bool).triu(1)
        return softmax_then(scores.masked_fill(hidden, torch.finfo(q.dtype).min), v)


class Swin(nn.Module):
    """A table of places in a window; windows of an image have masks of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(30, HEADS))
        self.register_buffer("index", torch.arange(ROWS * ROWS) % 30)
        self.register_buffer("mask", torch.randint(0, 2, (2, ROWS, ROWS)) * -100.0)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        b, h, s, _ = q.shape
        bias = self.table[self.index].view(s, s, -1).permute(2, 0, 1).contiguous()
        scores = q * WIDTH**-0.5 @ k.transpose(2, 3) + bias[None]
        scores = scores.view(b // 2, 2, h, s, s) + self.mask[None, :, None]
        return scores.view(b, h, s, s).softmax(-1) @ v


class Gemma2(nn.Module):
    """Capped scores, a causal mask that is added, heads of keys for several of queries."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        b, h, s, d = k.shape
        k, v = (x[:, :, None].expand(b, h, HEADS // h, s, d).reshape(b, HEADS, s, d) for x in (k, v))
        scores = torch.tanh(q @ k.transpose(2, 3) * WIDTH**-0.5 / 50.0) * 50.0
        rows, columns = torch.arange(s)[:, None], torch.arange(s)[None]
        mask = torch.where(columns > rows, torch.finfo(q.dtype).min, 0.0)[None, None]
        return softmax_then(scores + mask, v)


class Mistral(nn.Module):
    """A causal band of the last five columns, as booleans for PyTorch's attention."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(columns <= rows) & (columns > rows - 5))


class MistralEager(nn.Module):
    """The same as a mask that is added."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
        seen = (columns <= rows) & (columns > rows - 5)
        mask = torch.where(seen, 0.0, torch.finfo(q.dtype).min)[None, None].to(q.dtype)
        return softmax_then(q @ k.transpose(2, 3) * WIDTH**-0.5 + mask, v)


class Local(nn.Module):
    """A band on both sides."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(columns - rows < 4) & (rows - columns < 4))


class TopLeft(nn.Module):
    """More columns than rows, which stand at the first of them."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q[:, :, :5], k, v, is_causal=True)


class Masked(nn.Module):
    """PyTorch's attention with a mask of any shape."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@dataclass(frozen=True)
class Spelling:
    """A network, its further inputs, and the expected text of the attention."""

    network: Callable[[], nn.Module]
    words: tuple[str, ...] = ()
    inputs: Callable[[], tuple[Tensor, ...]] = tuple
    clause: str = ""
    groups: int = HEADS
    """Heads of keys."""
    dynamic: bool = False
    """Whether the length is a dim: numbers that follow from known lengths are folded before a mask is seen in them."""


def seen() -> tuple[Tensor, ...]:
    return ((torch.arange(ROWS) < torch.tensor([[ROWS], [7]])).long(),)


SPELLINGS = {
    "t5": Spelling(T5, (), seen, "scores("),
    "bloom": Spelling(Bloom, ("causal",), seen, "scores("),
    "mpt": Spelling(Mpt, ("causal",), tuple, "scores("),
    "swin": Spelling(Swin, (), tuple, ""),
    "gemma2": Spelling(Gemma2, ("causal",), tuple, "scores(", groups=2, dynamic=True),
    "mistral": Spelling(Mistral, ("causal", "window 5")),
    "mistral-eager": Spelling(MistralEager, ("causal", "window 5"), dynamic=True),
    "local": Spelling(Local, ("window 4",)),
    "top-left": Spelling(TopLeft, ("causal", "top_left")),
    **{
        f"mask-{'x'.join(map(str, shape))}": Spelling(Masked, (), lambda shape=shape: (torch.randn(shape),), "mask ")
        for shape in (
            (2, HEADS, ROWS, ROWS), (1, HEADS, ROWS, ROWS), (2, 1, ROWS, ROWS), (2, 1, 1, ROWS), (1, 1, ROWS, 1),
            (HEADS, ROWS, ROWS), (ROWS, ROWS), (1, ROWS),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_one_attention_comes_out_and_means_what_pytorch_computes(name: str) -> None:
    spelling = SPELLINGS[name]
    torch.manual_seed(0)
    network = spelling.network().eval()
    kv = [torch.randn(2, spelling.groups, ROWS, WIDTH) for _ in range(2)]
    given: tuple[Any, ...] = (torch.randn(2, HEADS, ROWS, WIDTH), *kv, *spelling.inputs())
    dynamic = ({2: Dim("seq", min=2, max=64)},) * 3 if spelling.dynamic else None
    imported = from_torch(network, given, dynamic_shapes=dynamic)
    labels = [label for label, _ in imported.graph.inputs()]
    module = run_to_phase(imported.module, "fused")
    ops = [op.name for op in module.walk()]
    assert ops.count("ait.attention") == 1
    assert not {"ait.softmax", "ait.bmm"} & set(ops)
    (line,) = re.findall(r"= ait\.attention .*", str(module))
    for word in ("causal", "top_left", "window 4", "window 5"):
        assert (f" {word}" in line) == (word in spelling.words), line
    assert spelling.clause in line
    attention = next(op for op in module.walk() if isinstance(op, AttentionOp))
    made = [op.results[0].type for op in attention.parent.ops if op.name == "ait.fused_elementwise"]  # pyright: ignore
    rows = attention.output.type.dims[2]  # pyright: ignore
    assert not [t for t in made if is_float(t.element_type) and t.rank > 1 and t.dims[-2:] == (rows, rows)]
    graph = attention.parent_op()
    arrays = {label: x.numpy() for label, x in zip(labels, given, strict=True)}
    dims = {"seq": ROWS} if spelling.dynamic else {}
    (found,) = evaluate_graph(graph, arrays, imported.constants, dims).values()  # pyright: ignore
    with torch.no_grad():
        np.testing.assert_allclose(found, network(*given).numpy(), rtol=1e-4, atol=1e-5)
