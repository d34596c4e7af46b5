"""What ops that only move elements mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.view import ConcatOp, PermuteOp, SliceOp, SplitOp
from ait_mlir.reference.core import Array, Evaluation, EvaluationError, reference


@reference("ait.reshape")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    shape = ev.shape(op.results[0].type)
    if int(np.prod(shape, dtype=np.int64)) != arrays[0].size:
        raise EvaluationError(
            f"ait.reshape of {arrays[0].shape} to {shape}: the numbers of elements differ at these dims"
        )
    return (arrays[0].reshape(shape),)


@reference("ait.expand")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    return (np.broadcast_to(arrays[0], ev.shape(op.results[0].type)),)


@reference("ait.permute")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    return (np.transpose(arrays[0], cast(PermuteOp, op).order()),)


@reference("ait.slice")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    offsets = [offset.evaluate(ev.dims) for offset in cast(SliceOp, op).offsets.data]
    shape = ev.shape(op.results[0].type)
    for axis, (offset, size, extent) in enumerate(zip(offsets, shape, arrays[0].shape, strict=True)):
        if offset < 0 or offset + size > extent:
            raise EvaluationError(
                f"ait.slice takes [{offset}, {offset + size}) of dim {axis}, which has {extent} elements"
            )
    return (arrays[0][tuple(slice(offset, offset + size) for offset, size in zip(offsets, shape, strict=True))],)


@reference("ait.split")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    axis = cast(SplitOp, op).dim.value.data
    ends = np.cumsum([ev.shape(result.type)[axis] for result in op.results])
    if int(ends[-1]) != arrays[0].shape[axis]:
        raise EvaluationError(
            f"ait.split of {arrays[0].shape[axis]} elements of dim {axis} into parts of {int(ends[-1])} in all"
        )
    return np.split(arrays[0], ends[:-1], axis)


@reference("ait.concat")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    return (np.concatenate(arrays, cast(ConcatOp, op).dim.value.data),)


@reference("ait.copies")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    return arrays
