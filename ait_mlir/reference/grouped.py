"""Reference semantics of ops that hold several problems: each problem is computed separately."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.grouped import GroupedGemmOp, GroupedNormOp, RaggedGemmOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, reference
from ait_mlir.reference.gemm import contract
from ait_mlir.reference.norm import layer_norm, rms_norm


@reference(GroupedGemmOp)
def _(grouped: GroupedGemmOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    factors, extras = arrays[: 2 * grouped.count], arrays[2 * grouped.count :]
    each = len(extras) // grouped.count
    results: list[Array] = []
    for i in range(grouped.count):
        result = contract(factors[2 * i], factors[2 * i + 1], grouped.layout.data)
        if grouped.epilogue.blocks:
            (result,) = ev.run_region(grouped.epilogue, [result, *extras[i * each : (i + 1) * each]])
        results.append(np.broadcast_to(result, ev.shape(grouped.results[i].type)))
    return results


@reference(GroupedNormOp)
def _(grouped: GroupedNormOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    normalise = layer_norm if grouped.kind.data == "layer" else rms_norm
    arrays_of = dict(zip(grouped.operands, arrays, strict=True))
    results: list[Array] = []
    for i, x in enumerate(grouped.inputs):
        y = normalise(arrays_of[x], 1, ev.number(grouped.eps))
        if grouped.scales:
            y = y * arrays_of[grouped.scales[i]]
        if grouped.biases:
            y = y + arrays_of[grouped.biases[i]]
        if grouped.epilogue.blocks:
            (y,) = ev.run_region(grouped.epilogue, [y, *(arrays_of[v] for v in grouped.extras_of(i))])
        results.append(np.broadcast_to(y, ev.shape(grouped.results[i].type)))
    return results


@reference(RaggedGemmOp)
def _(ragged: RaggedGemmOp, arrays: Arrays, ev: Evaluation) -> Arrays:
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
