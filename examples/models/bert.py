"""BERT (arXiv:1810.04805), its parameters named as in the published checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.attention import join_heads, split_heads
from ait_mlir.frontend.nn.embedding import Embedding
from ait_mlir.frontend.nn.linear import Linear
from ait_mlir.frontend.nn.module import Module, ModuleList
from ait_mlir.frontend.nn.norm import LayerNorm
from ait_mlir.frontend.tensor import Tensor


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
    hidden_act: str = "gelu"
    dtype: str = "float16"


class BertSelfAttention(Module):
    """Attention over [batch, seq, hidden], heads side by side in the last dim."""

    def __init__(self, config: BertConfig):
        hidden = config.hidden_size
        self.heads = config.num_attention_heads
        self.query = Linear(hidden, hidden, dtype=config.dtype)
        self.key = Linear(hidden, hidden, dtype=config.dtype)
        self.value = Linear(hidden, hidden, dtype=config.dtype)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(linear(x), self.heads) for linear in (self.query, self.key, self.value))
        return join_heads(ops.attention()(q, k, v))


class BertResidual(Module):
    """Projection, residual, norm."""

    def __init__(self, in_channels: int, config: BertConfig):
        self.dense = Linear(in_channels, config.hidden_size, specialization="add", dtype=config.dtype)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, config.dtype)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x, residual))


class BertAttention(Module):
    """Self attention, projection, residual, norm."""

    def __init__(self, config: BertConfig):
        self.self = BertSelfAttention(config)
        self.output = BertResidual(config.hidden_size, config)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.self(x), x)


class BertIntermediate(Module):
    """The wide half of the feed-forward block."""

    def __init__(self, config: BertConfig):
        self.dense = Linear(
            config.hidden_size, config.intermediate_size, specialization=config.hidden_act, dtype=config.dtype
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(x)


class BertLayer(Module):
    """One encoder layer: attention, then the feed-forward block."""

    def __init__(self, config: BertConfig):
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertResidual(config.intermediate_size, config)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class BertEncoder(Module):
    """[batch, seq, hidden] to [batch, seq, hidden]."""

    def __init__(self, config: BertConfig):
        self.layer = ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x)
        return x


class BertEmbeddings(Module):
    """Token ids, token types and positions, each [batch, seq] and int32 or int64, to [batch, seq, hidden]."""

    def __init__(self, config: BertConfig):
        hidden, dtype = config.hidden_size, config.dtype
        self.word_embeddings = Embedding([config.vocab_size, hidden], dtype)
        self.position_embeddings = Embedding([config.max_position_embeddings, hidden], dtype)
        self.token_type_embeddings = Embedding([config.type_vocab_size, hidden], dtype)
        self.LayerNorm = LayerNorm(hidden, config.layer_norm_eps, dtype)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        words = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.LayerNorm(words + self.position_embeddings(position_ids))


class BertModel(Module):
    """Token ids, token types and positions to hidden states: embeddings, then the encoder."""

    def __init__(self, config: BertConfig):
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        return self.encoder(self.embeddings(input_ids, token_type_ids, position_ids))
