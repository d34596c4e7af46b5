"""Reference semantics of collectives: the operands of all members of a group, and the results of all members."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    BroadcastOp,
    CollectivePermuteOp,
    ReducedNormOp,
    ReduceScatterOp,
)
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, Members, reference
from ait_mlir.reference.norm import layer_norm, rms_norm

_COMBINE: dict[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def combined(kind: str, arrays: Arrays) -> Array:
    """The sum, product, largest or smallest of arrays, in their order."""
    return reduce(_COMBINE[kind], arrays)


def parts(array: Array, count: int, axis: int) -> Arrays:
    """An array cut into equal parts along an axis."""
    if array.shape[axis] % count:
        raise EvaluationError(f"{count} ranks do not divide dim {axis} of shape {array.shape}")
    return np.split(array, count, axis)




def alike(result: Array, members: Members) -> Members:
    """One result on each member."""
    return [[result]] * len(members)


def only(members: Members) -> Arrays:
    """The one operand of each member."""
    return [array for (array,) in members]


@reference(AllReduceOp)
def _(op: AllReduceOp, members: Members, ev: Evaluation) -> Members:
    return alike(combined(op.kind.data, only(members)), members)


@reference(AllGatherOp)
def _(op: AllGatherOp, members: Members, ev: Evaluation) -> Members:
    return alike(np.concatenate(only(members), op.dim.value.data), members)


@reference(ReduceScatterOp)
def _(op: ReduceScatterOp, members: Members, ev: Evaluation) -> Members:
    return [[part] for part in parts(combined(op.kind.data, only(members)), len(members), op.dim.value.data)]


@reference(AllToAllOp)
def _(op: AllToAllOp, members: Members, ev: Evaluation) -> Members:
    sent = [parts(array, len(members), op.split.value.data) for array in only(members)]
    return [[np.concatenate([pieces[i] for pieces in sent], op.concat.value.data)] for i in range(len(members))]


@reference(BroadcastOp)
def _(op: BroadcastOp, members: Members, ev: Evaluation) -> Members:
    return alike(only(members)[op.root.value.data], members)


@reference(CollectivePermuteOp)
def _(op: CollectivePermuteOp, members: Members, ev: Evaluation) -> Members:
    operands = only(members)
    received = {target: operands[source] for source, target in op.messages()}
    return [[received.get(i, np.zeros_like(x))] for i, x in enumerate(operands)]


@reference(AllSliceOp)
def _(op: AllSliceOp, members: Members, ev: Evaluation) -> Members:
    return [[parts(x, len(members), op.dim.value.data)[i]] for i, x in enumerate(only(members))]


@reference(ReducedNormOp)
def _(op: ReducedNormOp, members: Members, ev: Evaluation) -> Members:
    reduced = combined("sum", [operands[0] for operands in members])
    results: list[Sequence[Array]] = []
    for operands in members:
        of = dict(zip(op.operands, operands, strict=True))
        total = reduced + of[op.residual]
        y = (rms_norm if op.centred is None else layer_norm)(total, op.trailing.value.data, ev.number(op.eps))
        y = y if op.scale is None else y * of[op.scale]
        results.append([y if op.bias is None else y + of[op.bias], total])
    return results
