"""Operators on jagged tensors, and bags of rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ait_mlir.dialects.ait import jagged as ait
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.intvar import IntVar, merge_symbols
from ait_mlir.frontend.jagged import JaggedDim, JaggedIntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.align import jagged_dim_of, take_rows
from ait_mlir.frontend.ops.constant import full
from ait_mlir.frontend.ops.cumulative import cumsum
from ait_mlir.frontend.ops.elementwise import cast, lt
from ait_mlir.frontend.ops.view import concatenate, unsqueeze
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "batched_dense_vec_jagged_2d_mul", "embedding_bag", "jagged_lengths_to_offsets", "jagged_lengths_to_presences",
    "jagged_to_padded_dense", "make_jagged", "padded_dense_to_jagged",
]  # fmt: skip

MADE = "jagged dims made of these offsets"
"""Key in `extra` of offsets for the jagged dims of earlier calls: the same sequences get the same dim."""


class make_jagged(Operator):
    """Declare tensors of `total` rows as jagged tensors: their rows are sequences laid end to end.

    `batch_dim` is the number of sequences, `jagged_dims` the least and the greatest length of a sequence for each
    level. A call takes a tensor or a list of tensors, and a tensor of int32 or int64 offsets for each level. The
    offsets of the first level are [batch + 1]; sequence i has the rows from `offsets[i]` up to `offsets[i + 1]`. The
    rows are not moved. Operators that use the offsets check them: on a CPU a run with wrong offsets fails and names
    them; a GPU clamps them.
    """

    def __init__(self, batch_dim: IntVar, jagged_dims: Sequence[JaggedDim], check_sequence_lengths: bool = True):
        self.batch_dim, self.jagged_dims = batch_dim, list(jagged_dims)

    @overload
    def __call__(self, source: Tensor, offsets_list: Sequence[Tensor]) -> Tensor: ...
    @overload
    def __call__(self, source: Sequence[Tensor], offsets_list: Sequence[Tensor]) -> list[Tensor]: ...
    def __call__(self, source: Tensor | Sequence[Tensor], offsets_list: Sequence[Tensor]) -> Tensor | list[Tensor]:
        sources = [source] if isinstance(source, Tensor) else list(source)
        self.begin(*sources, *offsets_list)
        if not sources or not offsets_list or any(not s.rank for s in sources):
            raise self.fail("needs tensors with rows, and offsets for each level")
        for level, offsets in zip(self.jagged_dims, offsets_list, strict=False):
            level.set_offsets(offsets)
        made: list[Tensor] = []
        for one in sources:
            dim = self._dim(one.shape()[0], offsets_list)
            result = TensorType.get([dim.expr, *one.type.dims[1:]], one.type.element_type)
            table = merge_symbols(one.symbols, dim.symbols)
            made.append(self.emit_one(ait.MakeJaggedOp, [one, *offsets_list], None, [result], symbols=table))
        self.outputs = made
        self._attrs["num_sources"] = len(made)
        return made[0] if isinstance(source, Tensor) else made

    def _dim(self, total: IntVar, offsets: Sequence[Tensor]) -> JaggedIntVar:
        """The jagged dim of `total` rows with these offsets; every call returns the same one."""
        if isinstance(total, JaggedIntVar):
            return total.with_offsets(offsets)
        known: dict[object, JaggedIntVar] = offsets[0].extra.setdefault(MADE, {})
        key = total.expr, self.batch_dim.expr, tuple(self.jagged_dims), tuple(o.serial for o in offsets)
        if key not in known:
            known[key] = JaggedIntVar(total, self.batch_dim, self.jagged_dims).with_offsets(offsets)
        return known[key]


class jagged_to_padded_dense(Operator):
    """A jagged tensor as a dense one: its leading dim becomes the batch and the longest sequence of each level.

    Shorter sequences are filled up with `padding_value`.
    """

    def __init__(self, padding_value: float = 0.0):
        self.padding_value = padding_value

    def __call__(self, x: Tensor) -> Tensor:
        dim = _jagged(self, x)
        properties = {"value": self.padding_value}
        return self.finish(self.emit_one(ait.JaggedToPaddedOp, [x, *dim.offsets()], properties))


class padded_dense_to_jagged(Operator):
    """The rows of all sequences in a dense tensor [batch, longest, ...], laid end to end in `total_length` rows.

    `total_length` is a `JaggedIntVar`, or an `IntVar` of an input: then the dims of the tensor are the batch and the
    longest sequences.
    """

    def __init__(self, total_length: IntVar):
        self.total_length = total_length

    def __call__(self, x: Tensor, offsets_list: Sequence[Tensor]) -> Tensor:
        if isinstance(self.total_length, JaggedIntVar):
            dim = self.total_length.with_offsets(offsets_list)
        else:
            longest = x.shape()[1 : 1 + len(offsets_list)]
            if not offsets_list or x.rank <= len(offsets_list):
                raise self.fail("needs offsets for each level, and a tensor [batch, longest sequences, ...]")
            levels = [JaggedDim(0, d) for d in longest]
            dim = make_jagged(x.shape()[0], levels)._dim(self.total_length, offsets_list)  # pyright: ignore[reportPrivateUsage]
        return self.finish(take_rows(self, x, dim, offsets_list))


class jagged_lengths_to_offsets(Operator):
    """The offsets [batch + 1] of sequences of these lengths: 0, then the sums of the lengths up to each one."""

    def __call__(self, lengths: Tensor) -> Tensor:
        if lengths.rank != 1:
            raise self.fail("lengths have one dim")
        return self.finish(concatenate()([full()([1], 0, lengths.dtype()), cumsum(0)(lengths)], 0))


class jagged_lengths_to_presences(Operator):
    """bool [batch, max_seq_len]: whether sequence i has a row j, for sequences of these lengths."""

    def __call__(self, lengths: Tensor, max_seq_len: int, dtype: str = "bool") -> Tensor:
        if lengths.rank != 1:
            raise self.fail("lengths have one dim")
        places = ConstantOp(list(range(max_seq_len)), TensorType.get([1, max_seq_len], lengths.type.element_type))
        present = lt()(Tensor.of(places.output, {}), unsqueeze(1)(lengths))
        return self.finish(present if dtype == "bool" else cast()(present, dtype))


class batched_dense_vec_jagged_2d_mul(Operator):
    """The product of a vector [batch, heads, longest] with a jagged matrix [words, heads, width] for each sequence and
    head: [batch, heads, width]."""

    def __call__(self, vectors: Tensor, matrices: Tensor) -> Tensor:
        dim = _jagged(self, matrices)
        return self.finish(self.emit_one(ait.JaggedVectorProductOp, [vectors, matrices, *dim.offsets()]))


class embedding_bag(Operator):
    """The sum, mean or maximum (`mode`) of the table's rows for each bag of ids: `torch.nn.EmbeddingBag`.

    The table is [rows, width], ids are [n], the result [bags, width]. `offsets` [bags] has the first id of each bag;
    with `include_last_offset` there is one more, the end of the last bag. `per_sample_weights` [n] multiply the rows of
    a sum. Ids equal to `padding_idx` are ignored, and a bag without ids is 0.
    """

    def __init__(self, mode: str = "sum", padding_idx: int | None = None, include_last_offset: bool = False):
        self.mode, self.padding_idx, self.include_last_offset = mode, padding_idx, include_last_offset

    def __call__(self, table: Tensor, ids: Tensor, offsets: Tensor, per_sample_weights: Tensor | None = None) -> Tensor:
        weights = [] if per_sample_weights is None else [per_sample_weights]
        self.begin(table, ids, offsets, *weights)
        if self.mode not in ait.BAG_KINDS:
            raise self.fail(f'mode "{self.mode}" is unknown; expected one of {", ".join(ait.BAG_KINDS)}')
        properties = {"kind": self.mode, "padding": self.padding_idx, "closed": self.include_last_offset}
        return self.finish(self.emit_one(ait.EmbeddingBagOp, [table, ids, offsets, *weights], properties))


def _jagged(operator: Operator, x: Tensor) -> JaggedIntVar:
    dim = jagged_dim_of(x)
    if dim is None or not dim.offsets():
        raise operator.fail(f"{x.describe()} is not jagged; make it by make_jagged")
    return dim
