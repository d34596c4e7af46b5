"""What ops that take indices mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.index import MaskedSelectOp, UpdateSliceOp
from ait_mlir.reference.core import Array, Evaluation, EvaluationError, reference


@reference("ait.embedding")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    table, ids = arrays
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= table.shape[0]):
        raise EvaluationError(f"ait.embedding: ids from {ids.min()} to {ids.max()} in a table of {table.shape[0]} rows")
    return (np.take(table, ids.astype(np.int64), axis=0),)


@reference("ait.update_slice")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    whole, rows, position = arrays
    axis = cast(UpdateSliceOp, op).axis
    count, extent = rows.shape[axis], whole.shape[axis]
    places = [int(p) for p in position] if position.ndim else range(int(position), int(position) + count)
    if places and (min(places) < 0 or max(places) >= extent):
        raise EvaluationError(f"ait.update_slice: places from {min(places)} to {max(places)} in a dim of {extent}")
    result = whole.copy()
    for row, place in enumerate(places):
        np.moveaxis(result, axis, 0)[place] = np.moveaxis(rows, axis, 0)[row]
    return (result,)


@reference("ait.masked_select")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    x, mask = arrays
    selected = x[mask]
    ev.bind(str(cast(MaskedSelectOp, op).bound_dim), len(selected))
    return selected, np.array(len(selected))
