"""Rows of tables, and the embeddings of BERT."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.norm import LayerNorm
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.tensor import Tensor

__all__ = ["BertEmbeddings", "Embedding"]


class Embedding(Module):
    """Ids of any shape, int32 or int64, to rows of the table `weight`, whose shape is [rows, size]."""

    def __init__(self, shape: Sequence[int], dtype: str = "float16"):
        self.weight = Parameter(shape, dtype)

    def tensor(self) -> Tensor:
        return self.weight.tensor()

    def forward(self, ids: Tensor) -> Tensor:
        return ops.embedding()(self.weight.tensor(), ids)


class BertEmbeddings(Module):
    """Token ids, token types and positions, each [batch, seq] and int32 or int64, to [batch, seq, hidden_size]."""

    def __init__(
        self,
        hidden_size: int,
        vocab_size: int,
        max_position_embeddings: int,
        type_vocab_size: int,
        layer_norm_eps: float,
        hidden_dropout_prob: float,
        dtype: str = "float16",
    ):
        if hidden_dropout_prob != 0:
            raise BuildError(
                f"BertEmbeddings: hidden_dropout_prob is {hidden_dropout_prob}, but this is inference; it must be 0"
            )
        self.word_embeddings = Embedding([vocab_size, hidden_size], dtype)
        self.position_embeddings = Embedding([max_position_embeddings, hidden_size], dtype)
        self.token_type_embeddings = Embedding([type_vocab_size, hidden_size], dtype)
        self.LayerNorm = LayerNorm([hidden_size], layer_norm_eps, dtype)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        words, types, positions = self.word_embeddings, self.token_type_embeddings, self.position_embeddings
        tables = words.tensor(), types.tensor(), positions.tensor()
        scale, shift = self.LayerNorm.weight.tensor(), self.LayerNorm.bias.tensor()
        ids = input_ids, token_type_ids, position_ids
        return ops.bert_embeddings()(*ids, *tables, scale, shift, self.LayerNorm.eps)
