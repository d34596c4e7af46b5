"""Makes the `Binding` of a graph."""

from __future__ import annotations

from typing import Any

from ait_mlir.graph.binding import Binding, BoundTensor
from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.lowering import slots_of
from ait_mlir.graph.ragged import row_stride


def make_binding(graph: GraphBuilder) -> Binding:
    """The binding of a validated graph: its tensors in order, each with the keys by which a variant pack
    may name it.
    """
    own, outs = graph.sides()
    slots, _ = slots_of(own, outs)
    tensors = [*own, *outs, *graph.code_scalars()]
    outputs = set(outs)
    places = [
        BoundTensor(
            t.label,
            t.name,
            graph.uid_of(t),
            t.dtype,
            t.dims or (),
            t.strides or (),
            t in outputs,
            t.is_by_value,
            t.value,
            row_stride(t) if t.ragged_offset is not None else 0,
        )
        for t in tensors
    ]
    keys: dict[Any, int] = {}
    for i, t in enumerate(tensors):
        keys[t] = keys[graph.uid_of(t)] = i
    names = [t.name for t in tensors]
    keys.update({n: i for i, n in enumerate(names) if names.count(n) == 1})
    also: dict[Any, str] = {}
    for t in graph.tensors:
        if t not in keys:
            reason = f"{t.label} is virtual: it has no memory; call set_output(True)" if t.producer else ""
            for key in (t, t.uid, t.name):
                if key not in keys:
                    also[key] = reason
    binding = Binding(graph.name, places, graph.device, keys, also, graph.origin)
    binding.inputs = len(own)
    binding.results = len(outs)
    binding.donated = [outs.index(s.tensor) for s in slots if s.is_donated]
    binding.bound = {i: graph.bound[t] for i, t in enumerate(tensors) if t in graph.bound}
    return binding
