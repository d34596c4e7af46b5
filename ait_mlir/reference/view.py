"""Reference semantics of ops that only move elements."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.view import ConcatOp, CopiesOp, ExpandOp, PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.reference.core import Arrays, Evaluation, EvaluationError, reference


@reference(ReshapeOp)
def _(op: ReshapeOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    shape = ev.shape(op.results[0].type)
    if int(np.prod(shape, dtype=np.int64)) != arrays[0].size:
        raise EvaluationError(
            f"ait.reshape of {arrays[0].shape} to {shape}: the numbers of elements differ at these dims"
        )
    return (arrays[0].reshape(shape),)


@reference(ExpandOp)
def _(op: ExpandOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (np.broadcast_to(arrays[0], ev.shape(op.results[0].type)),)


@reference(PermuteOp)
def _(op: PermuteOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (np.transpose(arrays[0], op.order()),)


@reference(SliceOp)
def _(op: SliceOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    offsets = [offset.evaluate(ev.dims) for offset in op.offsets.data]
    shape = ev.shape(op.results[0].type)
    for axis, (offset, size, extent) in enumerate(zip(offsets, shape, arrays[0].shape, strict=True)):
        if offset < 0 or offset + size > extent:
            raise EvaluationError(
                f"ait.slice takes [{offset}, {offset + size}) of dim {axis}, which has {extent} elements"
            )
    return (arrays[0][tuple(slice(offset, offset + size) for offset, size in zip(offsets, shape, strict=True))],)


@reference(SplitOp)
def _(op: SplitOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    axis = op.dim.value.data
    ends = np.cumsum([ev.shape(result.type)[axis] for result in op.results])
    if int(ends[-1]) != arrays[0].shape[axis]:
        raise EvaluationError(
            f"ait.split of {arrays[0].shape[axis]} elements of dim {axis} into parts of {int(ends[-1])} in all"
        )
    return np.split(arrays[0], ends[:-1], axis)


@reference(ConcatOp)
def _(op: ConcatOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (np.concatenate(arrays, op.dim.value.data),)


@reference(CopiesOp)
def _(op: CopiesOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return arrays
