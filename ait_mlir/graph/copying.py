"""Copies of a graph with other dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ait_mlir.errors import InputError
from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.layout import in_order_of, row_major
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.tensor import tensor

G = TypeVar("G", bound=GraphBuilder)
Shape = tuple[tuple[int, ...], tuple[int, ...]]
GiveShape = Callable[[tensor, tensor], None]
"""A function that sets the dims and strides of a new tensor from the old tensor."""
OWN_DIMS = ("reduction", "reshape")
"""Operations whose outputs have the dims that the caller sets."""


def copy_with(graph: G, shapes: Mapping[int, Shape]) -> G:
    """A graph with the same nodes, where tensors have the dims and strides in `shapes`, by UID.

    Without strides a tensor keeps the order of its dims in memory. A ragged tensor may have the strides of its memory,
    [rows, ..., size], one fewer than its dims. The dims of other outputs are inferred again. Raises `InputError` for a
    UID that no input or output has.
    """
    known = {t.uid for t in (*graph.inputs(), *graph.outputs())}
    if unknown := shapes.keys() - known:
        raise InputError(
            f"graph '{graph.name}': override of UID {next(iter(unknown))!r}, which is no input and no output"
        )
    for t in (*graph.inputs(), *graph.outputs()):
        shape = None if t.uid is None else shapes.get(t.uid)
        if shape is not None and len(shape[0]) != len(t.dims or ()):
            raise InputError(
                f"graph '{graph.name}': the override_shape of {t.label} is {list(shape[0])}, expected "
                f"{len(t.dims or ())} dims"
            )

    def give_shape(new: tensor, t: tensor) -> None:
        shape = shapes.get(t.uid) if t.uid is not None else None
        if shape is not None:
            dims, strides = shape
            if t.ragged_offset is not None and len(strides) == len(dims) - 1 > 1:
                strides = (*strides[:-1], strides[0], strides[-1])
            like = t.strides if t.strides is not None and len(t.strides) == len(dims) else row_major(dims)
            new.dims, new.strides = dims, strides or in_order_of(dims, like)
            new.has_own_dims = new.has_own_strides = True
        elif t.producer is None or t.producer.operation.name in OWN_DIMS:
            new.dims, new.strides = t.dims, t.strides
            new.has_own_dims, new.has_own_strides = t.has_own_dims, t.has_own_strides

    return copy_graph(graph, give_shape)


def copy_graph(graph: G, give_shape: GiveShape) -> G:
    """A graph with the same nodes, whose tensors have the dims that `give_shape` gives them."""
    copy = graph.empty_copy()
    copies: dict[tensor, tensor] = {}
    for t in graph.tensors:
        new = tensor(copy, t.name)
        for field in ("dtype", "is_virtual", "is_by_value", "value", "is_constant", "ragged_multiplier", "uid"):
            setattr(new, field, getattr(t, field))
        new.has_own_uid = t.has_own_uid
        give_shape(new, t)
        copies[t] = new
        copy.tensors.append(new)
    for t, new in copies.items():
        new.ragged_offset = None if t.ragged_offset is None else copies[t.ragged_offset]
    for node in graph.nodes:
        new_node = Node(
            node.name,
            node.operation,
            {port: copies[t] for port, t in node.inputs.items()},
            {port: [copies[t] for t in several] for port, several in node.lists.items()},
            dict(node.attributes),
            node.compute,
            {port: copies[t] for port, t in node.outputs.items()},
        )
        for t in new_node.outputs.values():
            t.producer = new_node
        copy.nodes.append(new_node)
    return copy
