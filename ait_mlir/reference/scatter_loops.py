"""Reference semantics of scatters in an order, of values that a region computes."""

from __future__ import annotations

import numpy as np

from ait_mlir.dialects.ait.scatter_loops import OrderedLoops, ScatterLoopsOp, SegmentLoopsOp
from ait_mlir.dialects.ait.syntax import int_list
from ait_mlir.reference.core import Arrays, Evaluation, reference
from ait_mlir.reference.index import combined, in_order
from ait_mlir.reference.loops import run_nest


@reference(ScatterLoopsOp)
def _(op: ScatterLoopsOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return combined_values(op, arrays, ev)


@reference(SegmentLoopsOp)
def _(op: SegmentLoopsOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    extras = arrays[op.FIRST_INPUT + len(op.inputs) :]
    found = combined_values(op, arrays[: len(arrays) - len(extras)], ev)
    if not op.then.blocks:
        return found
    return ev.run_ops(op.then.block.ops, dict(zip(op.then.block.args, (*found, *extras), strict=True)))


def combined_values(op: OrderedLoops, arrays: Arrays, ev: Evaluation) -> Arrays:
    """The tensor with the values of the region combined with its elements."""
    x, keys, places, *inputs = arrays
    space = [size.evaluate(ev.dims) for size in op.sizes]
    if 0 in space:
        return (x.copy(),)
    (values,) = run_nest(op, inputs, ev)
    values = np.broadcast_to(values, space)
    at, points = in_order(int_list(op.dims), int_list(op.kept), x, space, keys, places)
    return (combined(op.kind.data, x, at, values.reshape(-1)[points]),)
