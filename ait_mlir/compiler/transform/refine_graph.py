"""Gives equal operators one name, so that they share one function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.frontend.lift import emit
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.utils.graph_utils import get_sorted_ops

__all__ = ["get_sorted_ops", "refine_graph"]


def _place(value: SSAValue, values: Sequence[SSAValue | None]) -> int | None:
    return values.index(value) if value in values else None


def refine_graph(sorted_graph: Sequence[Tensor]) -> list[Tensor]:
    """Give equal operators on tensors of equal types the name of the first; returns the list.

    The operator's previous name stays in `_attrs["original_name"]`. Operators have names after `name_graph`. The
    lowered program shares kernels in the same way.
    """
    emission = emit(sorted_graph)
    names: dict[object, str] = {}
    for op in get_sorted_ops(sorted_graph):
        snapshots = emission.groups.get(op)
        if op.attrs["name"] is None or snapshots is None:
            continue
        read = [emission.values.get(tensor) for tensor in op.inputs]
        made: list[SSAValue] = [r for s in snapshots for r in s.op.results]
        wires = tuple((_place(v, made), _place(v, read)) for s in snapshots for v in s.operands)
        key = op.attrs["op"], tuple(op_key(s.op) for s in snapshots), wires
        name = names.setdefault(key, op.attrs["name"])
        if name != op.attrs["name"]:
            op.attrs["original_name"], op.attrs["name"] = op.attrs["name"], name
    return list(sorted_graph)
