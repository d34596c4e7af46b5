"""The meaning of several products in one op: each is computed by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ait_mlir.dialects.ait.grouped import GroupedGemmOp, RaggedGemmOp
from ait_mlir.reference.core import Array, Evaluation, reference
from ait_mlir.reference.gemm import contract


@reference(GroupedGemmOp)
def _(grouped: GroupedGemmOp, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    factors, extras = arrays[: 2 * grouped.count], arrays[2 * grouped.count :]
    each = len(extras) // grouped.count
    results: list[Array] = []
    for i in range(grouped.count):
        result = contract(factors[2 * i], factors[2 * i + 1], grouped.layout.data)
        if grouped.epilogue.blocks:
            (result,) = ev.run_region(grouped.epilogue, [result, *extras[i * each : (i + 1) * each]])
        results.append(np.broadcast_to(result, ev.shape(grouped.results[i].type)))
    return results


@reference(RaggedGemmOp)
def _(ragged: RaggedGemmOp, arrays: list[Array], ev: Evaluation) -> Sequence[Array]:
    a, b, ends, *extras = arrays
    result = np.zeros((a.shape[0], b.shape[2]), np.result_type(a, b))
    begin = 0
    for group, end in enumerate(ends):
        end = min(max(int(end), begin), a.shape[0])
        result[begin:end] = a[begin:end] @ b[group]
        begin = end
    if ragged.epilogue.blocks:
        (result,) = ev.run_region(ragged.epilogue, [result, *extras])
    return (np.broadcast_to(result, ev.shape(ragged.output.type)),)
