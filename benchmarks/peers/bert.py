"""BERT in plain PyTorch: the peer of `examples/models/bert.py`.

Parameters have the names of the published checkpoints, so one `state_dict` serves both sides. Attention is
`scaled_dot_product_attention` without a mask, which lets PyTorch take its fastest kernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT encoder; the defaults are BERT-base."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12


class BertSelfAttention(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, hidden = x.shape
        split = (batch, seq, self.heads, hidden // self.heads)
        q, k, v = (linear(x).view(split).transpose(1, 2) for linear in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, seq, hidden)


class BertResidual(nn.Module):
    """Projection, residual, norm."""

    def __init__(self, in_features: int, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(in_features, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.LayerNorm(self.dense(x) + residual)


class BertAttention(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertResidual(config.hidden_size, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.self(x), x)


class BertIntermediate(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.dense(x))


class BertLayer(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertResidual(config.intermediate_size, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    """[batch, seq, hidden] to [batch, seq, hidden]."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layer:
            x = layer(x)
        return x


class BertEmbeddings(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, ids: torch.Tensor, types: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        words = self.word_embeddings(ids) + self.token_type_embeddings(types)
        return self.LayerNorm(words + self.position_embeddings(positions))


class BertModel(nn.Module):
    """Token ids, token types and positions, each [batch, seq], to [batch, seq, hidden]."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)

    def forward(self, ids: torch.Tensor, types: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embeddings(ids, types, positions))


CONV1D = re.compile(r"\.c_(attn|proj|fc)\.weight$")
TABLES = ("embeddings", "embed_tokens", "pos_embed", "cls_token", "wte", "wpe")
"""Parts of the names of tables whose rows are vectors, where the last dim is no fan in."""


def randomize(model: nn.Module, seed: int = 0) -> nn.Module:
    """Fill every parameter so that activations keep a realistic size: weights of standard deviation 1/sqrt(fan in),
    norms near one, biases small but not zero. Zeros would hide a bias that is never read."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1 and name.endswith("weight"):
                parameter.copy_(1 + 0.1 * noise)
            elif parameter.ndim == 1:
                parameter.copy_(0.1 * noise)
            elif any(word in name for word in TABLES):
                parameter.copy_(noise)
            else:
                fan_in = parameter.shape[0] if CONV1D.search(name) else parameter[0].numel()
                parameter.copy_(noise / fan_in**0.5)
    return model
