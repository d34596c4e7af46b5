"""Checks of a graph before it is lowered: inferred dims, data types, cycles, outputs, UIDs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from ait_mlir.dialects.ait.types import MAX_BYTES
from ait_mlir.graph import ragged
from ait_mlir.graph.binding import unfit
from ait_mlir.graph.enums import data_type, ir_type, item_bytes
from ait_mlir.graph.errors import GraphError, cudnnGraphNotSupportedError
from ait_mlir.graph.layout import layout_of, row_major
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.tensor import tensor

STATISTICS = (
    "Stats",
    "MEAN",
    "INV_VARIANCE",
    "NEXT_RUNNING_MEAN",
    "NEXT_RUNNING_VAR",
    "SUM",
    "SQ_SUM",
    "score_max",
    "score_sum_exp",
)
"""Outputs that are FLOAT by default, independent of the graph's data types."""


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """The nodes in topological order. Raises `GraphError` for a cycle, with the names of its nodes."""
    made: set[tensor] = set()
    waiting, found = list(nodes), list[Node]()
    own = {t for node in nodes for t in node.outputs.values()}
    while waiting:
        ready = [n for n in waiting if all(t in made or t not in own for t in n.reads())]
        if not ready:
            names = ", ".join(f"'{n.name}'" for n in waiting)
            raise GraphError(f"the graph has a cycle: nodes {names} need the outputs of each other")
        for node in ready:
            made.update(node.outputs.values())
        found += ready
        waiting = [n for n in waiting if n not in ready]
    return found


def infer(node: Node) -> None:
    """Set the dims and strides of a node's outputs from its inputs, unless the caller set them.

    Raises `GraphError` if dims that the caller set do not agree.
    """
    for name, (dims, strides) in node.operation.infer(node).items():
        out = node.outputs.get(name)
        if out is None:
            continue
        if out.has_own_dims and out.dims is not None and out.dims != tuple(dims):
            raise node.wrong(f"{out.label} has dims {list(out.dims)}, but the node computes {list(dims)}")
        out.dims = tuple(dims)
        if not out.has_own_strides:
            out.strides = tuple(strides) if strides is not None else row_major(out.dims)


def complete(node: Node, io: data_type, intermediate: data_type) -> None:
    """Set the data types of a node's tensors to the graph's defaults if they are not set."""
    for t in node.reads():
        if t.dtype is data_type.NOT_SET:
            t.dtype = intermediate if t.is_virtual else io
    for name, t in node.outputs.items():
        if t.dtype is data_type.NOT_SET:
            moved = node.operation.name in ("transpose", "concatenate", "reshape") and not t.is_virtual
            first = next(iter(node.reads()), None)
            if name in STATISTICS:
                t.dtype = data_type.FLOAT
            elif node.operation.name == "slice" and first is not None:
                t.dtype = first.dtype
            else:
                t.dtype = intermediate if t.is_virtual else io
            if moved and t.dtype is data_type.NOT_SET and first is not None:
                t.dtype = first.dtype


def check(nodes: Sequence[Node], io: data_type, intermediate: data_type) -> list[Node]:
    """Check a graph and complete its tensors; returns the nodes in order."""
    if not nodes:
        raise GraphError("the graph has no node")
    ordered = in_order(nodes)
    read: set[tensor] = set()
    for node in ordered:
        complete(node, io, intermediate)
        for t in node.reads():
            if t.producer is None:
                check_tensor(t)
                if t.is_marked:
                    raise GraphError(f"{t.label} is an input; only what a node computes can be an output")
                if t.is_virtual:
                    raise GraphError(f"{t.label} is virtual, but no node computes it; only outputs of nodes can be")
            read.add(t)
        check_attributes(node)
        if node.operation.check is not None:
            node.operation.check(node)
        infer(node)
        for t in node.outputs.values():
            check_tensor(t, node)
        for port, t in (*node.inputs.items(), *node.outputs.items()):
            ragged.check(t, node, port)
        for several in node.lists.values():
            for t in several:
                ragged.check(t, node, "one of several inputs")
    outputs = [t for node in ordered for t in node.outputs.values() if not t.is_virtual]
    if not outputs:
        last = next(iter(ordered[-1].outputs.values()))
        raise GraphError(f"the graph has no output: call set_output(True), for instance on {last.label}")
    check_uids([*read, *outputs])
    return ordered


def check_attributes(node: Node) -> None:
    """Raise unless kernels support the node's compute type, and each attribute of an enumeration is a member of it."""
    if node.compute is not data_type.NOT_SET:
        ir_type(node.compute, f"{node.label}: compute_data_type")
    for name, default in node.operation.attributes.items():
        if isinstance(default, Enum) and not isinstance(node[name], type(default)):
            raise node.wrong(f"{name} is {node[name]!r}, expected one of cudnn.{type(default).__name__}")


def check_tensor(t: tensor, node: Node | None = None) -> None:
    """Raise unless a tensor has a data type that kernels support, and dims and strides that agree."""
    where = t.label if node is None else f"{node.label}: {t.label}"
    if t.dtype is data_type.NOT_SET:
        raise GraphError(
            f"{where} has no data type: call set_data_type, or give the graph an io_data_type and an "
            "intermediate_data_type"
        )
    ir_type(t.dtype, where)
    if t.dims is None:
        raise GraphError(f"{where} has no dims: call set_dim")
    if t.strides is None:
        t.strides = row_major(t.dims)
    if t.is_virtual and t.is_by_value:
        raise GraphError(f"{where} is virtual and passed by value; it can be one of both")
    if t.is_by_value and any(n != 1 for n in t.dims):
        raise GraphError(f"{where} is passed by value, but has dims {list(t.dims)}; expected one element")
    _check_size(t.dims, t, f"{where} has dims {list(t.dims)}")
    if t.value is not None and (reason := unfit(t.value, t.dtype)):
        raise GraphError(f"{where} is {reason}")
    if t.ragged_offset is not None:
        t.strides = ragged.with_batch_stride(t)
    layout = layout_of(t.dims, t.strides, where, is_read=t.producer is None)
    _check_size(layout.shape, t, f"{where} has dims {list(t.dims)} and strides {list(t.strides)}")


def _check_size(dims: Sequence[int], t: tensor, what: str) -> None:
    """Raise if a tensor of these dims in memory is too large for the IR."""
    if max(dims, default=0) > 1 << 40 or math.prod(dims) * item_bytes(t.dtype) > MAX_BYTES:
        raise cudnnGraphNotSupportedError(f"{what}; a dim is at most 2^40, and a tensor takes at most 2^48 bytes")


def check_uids(tensors: Sequence[tensor]) -> None:
    """Raise if two tensors have the same UID."""
    known: dict[int, tensor] = {}
    for t in dict.fromkeys(tensors):
        if t.uid is None:
            continue
        if t.uid in known:
            raise GraphError(f"{known[t.uid].label} and {t.label} have the same UID {t.uid}; UIDs are unique")
        known[t.uid] = t
