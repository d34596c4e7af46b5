"""Operators that move elements by index."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from ait_mlir.dialects.ait.index import EmbeddingOp, MaskedSelectOp, UpdateSliceOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.intvar import IntVar, as_dim, merge_symbols, product
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


class update_slice(Operator):
    """`x` with some of its rows along `dim` replaced by `rows`, which has the shape of `x` but for `dim`.

    `position` is an int32 or int64 tensor: of rank 0, row i goes to place position + i; of rank 1, it has the place of
    each row. A place outside of `x` has no meaning: on a CPU the run fails, on a GPU the row is left out. In a model
    whose result takes the place of the input `x` (`mark_as_output`), the rows alone are written.
    """

    def __init__(self, dim: int = 0):
        super().__init__()
        self.dim = dim

    def __call__(self, x: Tensor, rows: Tensor, position: Tensor) -> Tensor:
        self.begin(x, rows, position)
        properties = {"dim": IntegerAttr(self.axis(x, self.dim), i64)}
        return self.finish(self.emit_one(UpdateSliceOp, [x, rows, position], properties))


class masked_select(Operator):
    """The elements of `x` where `mask`, a bool tensor of its leading dims, is true, in order; and how many they are.

    The first dim of the first result is named `dim` (made up by default). A run binds it: a caller gives room for as
    many elements as the mask has, and finds the actual shape in the outputs. The second result is an int64 of rank 0.
    """

    def __init__(self, dim: str | None = None):
        super().__init__()
        self.dim = dim

    def __call__(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        self.begin(x, mask)
        most = product(mask.shape())
        count = IntVar.bound_by(most, self.dim)
        rest = [as_dim(dim).expr for dim in x.shape()[mask.rank :]]
        types = [TensorType.get([count.expr, *rest], x.type.element_type), TensorType.get([], i64)]
        symbols = merge_symbols(most.symbols, count.symbols)
        self.outputs = self.emit(MaskedSelectOp, [x, mask], None, types, symbols=symbols)
        return self.outputs[0], self.outputs[1]


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
