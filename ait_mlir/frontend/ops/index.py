"""Operators that move elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.building.writer import Writer
from ait_mlir.compositions import index as compositions
from ait_mlir.dialects.ait.index import SCATTERS, EmbeddingOp, GatherOp, UpdateSliceOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.frontend.intvar import IntVar, as_dim, product
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import where
from ait_mlir.frontend.ops.norm import layernorm
from ait_mlir.frontend.ops.view import reshape
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "batch_gather", "bert_embeddings", "embedding", "gather", "index_put", "index_select", "masked_select",
    "scatter", "scatter_reduce", "update_slice",
]  # fmt: skip


class embedding(Operator):
    """Rows of a table: `table[ids]`. The table is [rows, size], ids are int32 or int64 of any shape."""

    def __call__(self, table: Tensor, ids: Tensor) -> Tensor:
        return self.finish(self.emit_one(EmbeddingOp, [table, ids]))


class index_select(Operator):
    """Slices of `x` along `dim`, in the order of the indices: an int32 or int64 tensor of one dim.

    An index from -size to -1 counts from the end. Another index outside of the dim fails on a CPU; on a GPU its slice
    is NaN, or 0 for integers.
    """

    def __init__(self, dim: int = 0):
        self.dim = dim

    def __call__(self, x: Tensor, dim_idxs: Tensor) -> Tensor:
        axis = self.axis(x, self.dim)
        if dim_idxs.rank != 1:
            raise self.fail("selects slices by a 1-D tensor of indices")
        return self.write(compositions.slices_at, x, axis, dim_idxs, from_end=True)


class gather(Operator):
    """Elements of `x` along `dim`: result[i, j, k] is x[index[i, j, k], j, k] for dim 0.

    `index`, int32 or int64, has the rank of `x` and is no larger along the other dims. Its values have the same rules
    as in `index_select`.
    """

    def __call__(self, x: Tensor, dim: int, index: Tensor) -> Tensor:
        axis = self.axis(x, dim)
        if index.rank != x.rank:
            raise self.fail(f"the index has rank {index.rank}, expected {x.rank}")
        return self.write(compositions.gathered, x, axis, index)


class batch_gather(Operator):
    """Slices of each batch: result[b, k] is x[b, indices[b, k]].

    All dims of `indices` except its last are the leading dims of `x`. Indices have the same rules as in `index_select`.
    """

    def __call__(self, x: Tensor, indices: Tensor) -> Tensor:
        if not 1 <= indices.rank <= x.rank:
            raise self.fail(f"indices have rank {indices.rank}, expected 1 to {x.rank}")
        return self.write(_batch_gather, x, indices)


class scatter(Operator):
    """`x` with the elements of `src` written or combined along `dim`: result[index[i, j], j] from src[i, j] for dim 0.

    `reduce` is "set", "add", "mul", "max" or "min". `index`, int32 or int64, and `src` have one shape, of the rank of
    `x` and no larger along the other dims; or `src` broadcasts to it. If several values go to one element, they are
    combined in row-major order, so "set" keeps the last one. Indices have the same rules as in `index_select`, except
    that a GPU skips indices outside of the dim.
    """

    def __init__(self, dim: int = 0, reduce: str = "set"):
        self.dim = dim
        self.reduce = reduce

    def __call__(self, x: Tensor, index: Tensor, src: Tensor) -> Tensor:
        axis = self.axis(x, self.dim)
        if self.reduce not in SCATTERS:
            raise self.fail(f"reduce is {self.reduce!r}, expected one of {', '.join(SCATTERS)}")
        if index.rank != x.rank:
            raise self.fail(f"the index has rank {index.rank}, expected {x.rank}")
        return self.write(compositions.scattered_along, self.reduce, x, axis, index, src)


class scatter_reduce(Operator):
    """`scatter` with PyTorch's names of reductions: combines elements of `x` along `dim` with the elements of `src` at
    `index`.

    `reduce` is "sum", "prod", "amax", "amin" or "mean", which rounds down for integers. Without `include_self` an
    element of `x` that an index names is not part of its result.
    """

    def __init__(self, dim: int, reduce: str, include_self: bool = True):
        self.dim, self.reduce, self.include_self = dim, reduce, include_self

    def __call__(self, x: Tensor, index: Tensor, src: Tensor) -> Tensor:
        axis = self.axis(x, self.dim)
        if self.reduce not in compositions.REDUCTIONS:
            raise self.fail(f"reduce is {self.reduce!r}, expected one of {', '.join(compositions.REDUCTIONS)}")
        if index.rank != x.rank:
            raise self.fail(f"the index has rank {index.rank}, expected {x.rank}")
        return self.write(self._reduced, x, axis, index, src)

    def _reduced(self, w: Writer, x: SSAValue, axis: int, index: SSAValue, src: SSAValue) -> SSAValue:
        def write(kind: str, into: SSAValue, values: Value) -> SSAValue:
            return compositions.scattered_along(w, kind, into, axis, index, w.natural(values))

        return compositions.reduced_into(w, self.reduce, x, src, write, self.include_self)


class index_put(Operator):
    """`x[i, :, j] = values`, or `+=` with `accumulate`.

    `indices` has an int32 or int64 tensor, or None for a dim without index, for each of the leading dims of `x`. The
    index tensors broadcast to one shape. As in NumPy and PyTorch, its dims are at the position of the first index if
    all indices are neighbours, else in front; `values` broadcast to these dims and the dims without index. Of several
    values for one element the last one is kept, or all are added. Indices have the same rules as in `scatter`. A single
    bool tensor with the leading dims of `x` chooses the elements where it is true; `values` then broadcast to `x`.
    """

    def __init__(self, accumulate: bool = False):
        self.accumulate = accumulate

    def __call__(self, x: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
        used = {d: i for d, i in enumerate(indices) if i is not None}
        self.begin(x, *used.values(), values)
        if not used or len(indices) > x.rank:
            raise self.fail(f"needs 1 to {x.rank} indices, found {len(indices)}, of which {len(used)} are not None")
        if any(i.dtype() == "bool" for i in used.values()):
            return self.finish(self._where(x, indices, values))
        return self.write(_index_put, "add" if self.accumulate else "set", x, list(indices), values)

    def _where(self, x: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
        mask = indices[0]
        if mask is None or len(indices) > 1:
            raise self.fail("a bool index must be the only one")
        mask = reshape()(mask, [*mask.shape(), *[1] * (x.rank - mask.rank)])
        y = where()(mask, x + values if self.accumulate else values, x)
        if y.shape() != x.shape():
            raise self.fail(f"the mask and the values do not broadcast to {x.describe()}")
        return y


class update_slice(Operator):
    """`x` with some of its rows along `dim` replaced by `rows`, which has the shape of `x` but for `dim`.

    `position` is an int32 or int64 tensor: of rank 0, row i goes to place position + i; of rank 1, it has the place of
    each row. A place outside of `x` is invalid: on a CPU the run fails, on a GPU the row is skipped. If the result
    replaces the input `x` (`mark_as_output`), only the rows are written.
    """

    def __init__(self, dim: int = 0):
        self.dim = dim

    def __call__(self, x: Tensor, rows: Tensor, position: Tensor) -> Tensor:
        properties = {"dim": self.axis(x, self.dim)}
        return self.finish(self.emit_one(UpdateSliceOp, [x, rows, position], properties))


class masked_select(Operator):
    """The elements of `x` at the places where `mask`, a bool tensor, is true, in order, as in `torch.masked_select`.

    The two broadcast to one shape. The dim of the result is named `dim` (by default a new name), and the run binds it.
    The caller provides outputs with room for as many elements as that shape has; a run returns them with the actual
    shape. After the call, `outputs[1]` is the number of elements, an int64 of rank 0.
    """

    def __init__(self, dim: str | None = None):
        self.dim = dim

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        rank = max(x.rank, mask.rank)
        padded = [[as_dim(1)] * (rank - t.rank) + t.shape() for t in (x, mask)]
        shape = [b if a == 1 else a for a, b in zip(*padded, strict=True)]
        return self.write_all(compositions.masked_select, x, mask, IntVar.bound_by(product(shape), self.dim))[0]


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


def _batch_gather(w: Writer, x: SSAValue, indices: SSAValue) -> SSAValue:
    rank, axis = tensor_type(x).rank, tensor_type(indices).rank - 1
    index = compositions.padded(w, indices, axis + 1, rank - axis - 1)
    return w.op(GatherOp, x, index, properties={"dims": [axis], "kept": [d for d in range(rank) if d != axis]})


def _index_put(w: Writer, kind: str, x: SSAValue, indices: Sequence[SSAValue | None], values: SSAValue) -> SSAValue:
    places = compositions.placed(w, tensor_type(x).rank, indices, w.full)
    return compositions.scattered(w, kind, x, values, *places)
