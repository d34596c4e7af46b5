"""What ops that take indices mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from ait_mlir.reference.core import Array, Evaluation, EvaluationError, reference


@reference("ait.embedding")
def _(op: Operation, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    table, ids = arrays
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= table.shape[0]):
        raise EvaluationError(f"ait.embedding: ids from {ids.min()} to {ids.max()} in a table of {table.shape[0]} rows")
    return (np.take(table, ids.astype(np.int64), axis=0),)
