"""Cuts operations out of a graph."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type


def cut_out(ops: Sequence[Operation], results: Sequence[SSAValue], name: str = "part") -> GraphOp:
    """A graph of its own with copies of operations, in order, whose outputs are `results`.

    What they read from outside are the inputs `x0`, `x1`, ...; the outputs are `y0`, `y1`, ...
    """
    inside = set(ops)
    read = list(dict.fromkeys(value for op in ops for value in op.operands if value.owner not in inside))
    graph = GraphOp(name, [(f"x{i}", tensor_type(value)) for i, value in enumerate(read)], scope_of(ops[0]))
    values: dict[SSAValue, SSAValue] = dict(zip(read, graph.block.args, strict=True))
    for op in ops:
        graph.block.add_op(op.clone(values))
    for i, result in enumerate(results):
        graph.block.add_op(OutputOp(f"y{i}", values[result]))
    return graph
