"""Reference semantics of scans: loops with carried values."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, element_type_of, reference, value_dtype


@reference(ScanOp)
def scan(scan: ScanOp, arrays: Arrays, evaluation: Evaluation) -> Arrays:
    count, carry = len(scan.scanned), len(scan.init)
    scanned, carried, captured = arrays[:count], arrays[count : count + carry], arrays[count + carry :]
    stacked = [np.empty(evaluation.shape(r.type), value_dtype(element_type_of(r.type))) for r in scan.results[carry:]]
    steps = range(scan.length.evaluate(evaluation.dims))
    for i in reversed(steps) if scan.reverse is not None else steps:
        slices = [np.take(array, i, axis=scan.axis) for array in scanned]
        values: dict[SSAValue, Array] = dict(zip(scan.block.args, (*slices, *carried, *captured), strict=True))
        yielded = evaluation.run_ops(scan.block.ops, values)
        carried = yielded[:carry]
        for array, piece in zip(stacked, yielded[carry:], strict=True):
            array[(slice(None),) * scan.axis + (i,)] = piece
    return [*carried, *stacked]
