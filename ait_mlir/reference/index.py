"""What ops that take indices mean."""

from __future__ import annotations

from collections.abc import Sequence

from typing import cast

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.index import UpdateSliceOp
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
    places = (np.arange(count) if position.ndim == 0 else 0) + position.astype(np.int64)
    if places.size and (int(places.min()) < 0 or int(places.max()) >= extent):
        raise EvaluationError(f"ait.update_slice: places from {places.min()} to {places.max()} in a dim of {extent}")
    result = whole.copy()
    np.moveaxis(result, axis, 0)[places] = np.moveaxis(rows, axis, 0)
    return (result,)
