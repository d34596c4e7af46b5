"""Operators that move elements by index."""

from __future__ import annotations

from ait_mlir.dialects.ait.index import EmbeddingOp
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.norm import layernorm
from ait_mlir.frontend.tensor import Tensor


class embedding(Operator):
    """Rows of a table: `table[ids]`. The table is [rows, size], ids are int32 or int64 of any shape."""

    def __call__(self, table: Tensor, ids: Tensor) -> Tensor:
        self.begin(table, ids)
        return self.finish(self.emit_one(EmbeddingOp, [table, ids]))


class index_select(Operator):
    """The rows of a 2-D tensor that `dim_idxs` names; only `dim` 0 is supported."""

    def __init__(self, dim: int = 0):
        super().__init__()
        self.dim = dim

    def __call__(self, x: Tensor, dim_idxs: Tensor) -> Tensor:
        self.begin(x, dim_idxs)
        if self.axis(x, self.dim) != 0 or x.rank != 2 or dim_idxs.rank != 1:
            raise self.fail("selects rows of a 2-D tensor by a 1-D tensor of indices, along dim 0")
        return self.finish(self.emit_one(EmbeddingOp, [x, dim_idxs]))


class bert_embeddings(Operator):
    """The embeddings of BERT: words + token types + positions, normalised (arXiv:1810.04805).

    The three id tensors have one shape, [batch, seq]; the tables are [rows, hidden]; gamma and beta are [hidden].
    """

    def __call__(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        word_embeddings: Tensor,
        token_type_embeddings: Tensor,
        position_embeddings: Tensor,
        gamma: Tensor,
        beta: Tensor,
        eps: float = 1e-5,
    ) -> Tensor:
        self.begin(input_ids, token_type_ids, position_ids, word_embeddings, token_type_embeddings, position_embeddings)
        words = embedding()(word_embeddings, input_ids)
        types = embedding()(token_type_embeddings, token_type_ids)
        positions = embedding()(position_embeddings, position_ids)
        return self.finish(layernorm()(words + types + positions, gamma, beta, eps=eps))
