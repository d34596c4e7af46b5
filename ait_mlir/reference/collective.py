"""Reference semantics of collectives: the operands of all members of a group, and the results of all members."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    BroadcastOp,
    ReduceScatterOp,
)
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, reference

_COMBINE: dict[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def combined(kind: str, arrays: Arrays) -> Array:
    """The sum, product, largest or smallest of arrays, in their order."""
    return reduce(_COMBINE[kind], arrays)


def parts(array: Array, count: int, axis: int) -> Arrays:
    """An array cut into equal parts along an axis."""
    if array.shape[axis] % count:
        raise EvaluationError(f"{count} ranks do not divide dim {axis} of shape {array.shape}")
    return np.split(array, count, axis)


@reference(AllReduceOp)
def _(op: AllReduceOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return [combined(op.kind.data, arrays)] * len(arrays)


@reference(AllGatherOp)
def _(op: AllGatherOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return [np.concatenate(arrays, op.dim.value.data)] * len(arrays)


@reference(ReduceScatterOp)
def _(op: ReduceScatterOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return parts(combined(op.kind.data, arrays), len(arrays), op.dim.value.data)


@reference(AllToAllOp)
def _(op: AllToAllOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    sent = [parts(array, len(arrays), op.split.value.data) for array in arrays]
    return [np.concatenate([pieces[i] for pieces in sent], op.concat.value.data) for i in range(len(arrays))]


@reference(BroadcastOp)
def _(op: BroadcastOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return [arrays[op.root.value.data]] * len(arrays)


@reference(AllSliceOp)
def _(op: AllSliceOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return [parts(array, len(arrays), op.dim.value.data)[i] for i, array in enumerate(arrays)]
