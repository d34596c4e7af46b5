"""Reference semantics of ops on sequences of different lengths."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation

from ait_mlir.dialects.ait.jagged import (
    EmbeddingBagOp,
    JaggedToPaddedOp,
    JaggedVectorProductOp,
    MakeJaggedOp,
    PaddedToJaggedOp,
    jagged_dim,
)
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, element_type_of, reference
from ait_mlir.reference.elementwise import cast_values


def check_offsets(name: str, offsets: Array, limit: int, longest: int | None = None) -> None:
    """Raise `EvaluationError` for offsets that decrease, leave the data, or bound a sequence longer than declared."""
    if not offsets.size:
        return
    lengths = np.diff(offsets)
    if offsets.min() < 0 or offsets.max() > limit or (lengths < 0).any():
        raise EvaluationError(f"{name}: offsets {offsets.tolist()} fall, or leave the data of {limit} rows")
    if longest is not None and lengths.size and lengths.max() > longest:
        raise EvaluationError(f"{name}: a sequence has {lengths.max()} rows, more than {longest}")


@reference(EmbeddingBagOp)
def _(bag: EmbeddingBagOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    table, ids, offsets = arrays[:3]
    weights = arrays[3] if len(arrays) > 3 else None
    check_offsets(bag.name, offsets, len(ids))
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= table.shape[0]):
        raise EvaluationError(f"{bag.name}: ids from {ids.min()} to {ids.max()} in a table of {table.shape[0]} rows")
    ends = offsets if bag.closed is not None else np.append(offsets, len(ids))
    padding = None if bag.padding is None else bag.padding.value.data
    result = np.zeros((len(ends) - 1, table.shape[1]), table.dtype)
    combine = {"sum": np.sum, "mean": np.mean, "max": np.max}[bag.kind.data]
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        kept = [j for j in range(int(start), int(end)) if padding is None or ids[j] != padding]
        rows = table[ids[kept].astype(np.int64)]
        if weights is not None:
            rows = rows * weights[kept, None]
        if len(kept):
            result[i] = combine(rows, axis=0)
    return (result,)


@reference(MakeJaggedOp)
def _(op: MakeJaggedOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (arrays[0],)


def rows_of(op: Operation, tensor: int, offsets: Sequence[Array], ev: Evaluation, jagged_type: int | None) -> Array:
    """The row of data for each padded position [batch, longest, ...]; -1 if the sequence is shorter."""
    t = tensor_type(op.operands[tensor] if jagged_type is None else op.results[jagged_type])
    jagged = jagged_dim(op, t, "the tensor")  # type: ignore[arg-type]
    total = t.dims[0].evaluate(ev.dims)
    at = np.arange(jagged.batch.evaluate(ev.dims))
    lengths_of_levels = [longest.evaluate(ev.dims) for _, longest in jagged.levels]
    for level, (longest, starts) in enumerate(zip(lengths_of_levels, offsets, strict=True)):
        below = len(offsets[level + 1]) - 1 if level + 1 < len(offsets) else total
        check_offsets(op.name, starts, below, longest)
        if len(starts) < 2:
            at = np.full((*at.shape, longest), -1)
            continue
        known = np.clip(at, 0, len(starts) - 2)
        begins, lengths = starts[known], np.where(at < 0, 0, starts[known + 1] - starts[known])
        steps = np.arange(longest)
        at = np.where(steps < lengths[..., None], begins[..., None] + steps, -1)
    return at


@reference(JaggedToPaddedOp)
def _(op: JaggedToPaddedOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, *offsets = arrays
    places = rows_of(op, 0, offsets, ev, None)
    fill = cast_values(np.array(op.value.value.data), f64, element_type_of(op.output.type))
    result = np.full((*places.shape, *x.shape[1:]), fill, x.dtype)
    result[places >= 0] = x[places[places >= 0]]
    return (result,)


@reference(PaddedToJaggedOp)
def _(op: PaddedToJaggedOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, *offsets = arrays
    places = rows_of(op, 0, offsets, ev, 0)
    result = np.zeros(ev.shape(op.results[0].type), x.dtype)
    result[places[places >= 0]] = x[places >= 0]
    return (result,)


@reference(JaggedVectorProductOp)
def _(op: JaggedVectorProductOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    vectors, matrices, offsets = arrays
    places = rows_of(op, 1, [offsets], ev, None)
    rows = np.zeros((*places.shape, *matrices.shape[1:]), matrices.dtype)
    rows[places >= 0] = matrices[places[places >= 0]]
    held = np.where((places >= 0)[:, None, :], vectors, 0)  # beyond a sequence a vector may hold anything
    return (np.einsum("bhn,bnhd->bhd", held, rows),)
