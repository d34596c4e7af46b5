"""Reference semantics of recurrences: a product in float64 and the region for each step."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.recurrence import RecurrenceOp
from ait_mlir.reference.core import Arrays, Evaluation, element_type_of, reference, value_dtype


@reference(RecurrenceOp)
def recurrence(op: RecurrenceOp, arrays: Arrays, evaluation: Evaluation) -> Arrays:
    weight, carry = arrays[0], len(op.init)
    states, inputs = list(arrays[1 : 1 + carry]), arrays[1 + carry :]
    stacked = [np.empty(evaluation.shape(r.type), value_dtype(element_type_of(r.type))) for r in op.results[carry:]]
    shape, steps = states[0].shape, range(op.steps.evaluate(evaluation.dims))
    for step in reversed(steps) if op.reverse is not None else steps:
        gates = np.split(states[0] @ weight.T, op.gates, axis=1)
        now = [np.broadcast_to(x[step if x.shape[0] > 1 else 0], shape) for x in inputs]
        yielded = evaluation.run_region(op.body, [*gates, *now, *states])
        states = [np.broadcast_to(value, shape) for value in yielded[:carry]]
        for array, value in zip(stacked, yielded[carry:], strict=True):
            array[step] = value
    return [*states, *stacked]
