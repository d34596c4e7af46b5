"""Joins operators that a pass made into the one operator that AITemplate documents for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ait_mlir.frontend.lift import GraphOperator
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.utils.graph_utils import get_sorted_ops

VIEWS = ("reshape", "permute", "permute021", "permute102", "permute0213")


class documented_operator(Operator):
    """One documented operator in place of several, with its name and the attributes `attrs`."""

    def __init__(
        self,
        name: str,
        operators: Sequence[Operator],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
    ):
        self._attrs |= {**attrs, "op": name, "name": None}
        self.inputs, self.outputs = inputs, outputs
        self.take_the_place_of(operators)


def join_heads(graph: list[Tensor]) -> list[Tensor]:
    """The graph with `gemm_rcr_bias_permute`, `bmm_rrr_permute` and the like in place of a batched product and the
    views that a pass made around it."""
    last = [t for t in graph if t.is_output] or [graph[-1]]
    joined = [join_product(op) for op in get_sorted_ops(graph) if isinstance(op, GraphOperator)]
    return toposort(last) if any(joined) else graph


def join_product(product: Operator) -> bool:
    """Join a product with the views of its inputs and the permute of its result; returns whether there were any."""
    name = product.attrs["op"]
    if not name.startswith("bmm_") or product.outputs[0].rank != 4:
        return False
    before = [views_before(tensor) for tensor in product.inputs]
    if not before[0] or not before[1]:
        return False
    inside = [*(view for views in before for view in views), product]
    inputs = [views[0].inputs[0] if views else t for views, t in zip(before, product.inputs, strict=True)]
    made = product.outputs[0]
    _, heads, rows, _ = made.shape()
    if before[0][-1].outputs[0].shape()[1] != 1:  # the heads were part of the batch; a permute moves them
        permute = next(iter(made.users), None)
        if not isinstance(permute, GraphOperator) or permute.attrs["op"] != "permute0213" or len(made.users) != 1:
            return False
        inside, made, shape = [*inside, permute], permute.outputs[0], (heads,)
    else:
        shape = (rows, heads)
    if inputs[1].rank == 2:
        name = name.replace("bmm_", "gemm_", 1)
    if len(inputs) > 2 and inputs[2].rank == 1:
        name = name.replace("_add", "_bias", 1)
    attrs = {**product.attrs, "shape": shape, "layout": "0213"}
    documented_operator(f"{name}_permute", inside, inputs, [made], attrs)
    return True


def views_before(tensor: Tensor) -> list[Operator]:
    """The chain of views that passes made before a tensor, in order; each is the only reader of its predecessor."""
    found: list[Operator] = []
    while True:
        maker = next(iter(tensor.sources), None)
        if not isinstance(maker, GraphOperator) or maker.attrs["op"] not in VIEWS or len(tensor.users) != 1:
            return found
        found.insert(0, maker)
        tensor = maker.inputs[0]


def join_jagged(graph: list[Tensor]) -> list[Tensor]:
    """The graph with one `make_jagged` for all inputs that passes made jagged with the same offsets."""
    last = [t for t in graph if t.is_output] or [graph[-1]]
    groups: dict[tuple[Tensor, ...], list[Operator]] = {}
    for op in get_sorted_ops(graph):
        if isinstance(op, GraphOperator) and op.attrs["op"] == "make_jagged" and not op.inputs[0].sources:
            groups.setdefault(tuple(op.inputs[1:]), []).append(op)
    for offsets, views in groups.items():
        if len(views) > 1:
            inputs = [*(view.inputs[0] for view in views), *offsets]
            attrs = {"num_sources": len(views)}
            documented_operator("make_jagged", views, inputs, [view.outputs[0] for view in views], attrs)
    return toposort(last) if any(len(views) > 1 for views in groups.values()) else graph


__all__ = ["documented_operator", "join_heads", "join_jagged"]
