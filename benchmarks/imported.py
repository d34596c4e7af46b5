"""The measured models, with ours imported from the same module that PyTorch runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import Dim

from ait_mlir.dims import Scope
from ait_mlir.frontend import build_module
from ait_mlir.importers.torch import Imported, from_torch
from benchmarks.workloads import Size, Workload

NOT_IMPORTED = {
    "llama-decode": "its peer writes the keys and values of a step into a cache; ours, written by hand, returns them"
}
"""Why a model has no imported row."""


def import_workload(name: str, work: Workload, sizes: Sequence[Size]) -> Imported:
    """The peer of a workload, imported with the dynamic dims, ranges and hints of the graph written by hand."""
    (graph,) = build_module(work.outputs, name).ops
    scope: Scope = graph.scope  # pyright: ignore[reportAttributeAccessIssue]
    dims = {d.name: Dim(d.name, min=d.lo, max=d.hi) for d in scope}
    batch, length = max(sizes)
    arguments = work.arguments(work.inputs((max(batch, 2), length), "cpu"))
    dynamic: list[dict[int, Any]] = []
    for (_, value), given in zip(graph.inputs(), arguments, strict=True):  # pyright: ignore[reportAttributeAccessIssue]
        axes = {axis: str(d) for axis, d in enumerate(value.type.dims) if d.symbols}
        dynamic.append({axis: dims[d] for axis, d in axes.items()})
        assert given.ndim == len(value.type.dims), f"{name}: input {given.shape} is not {value.type}"
    hints = {d.name: d.hints for d in scope if d.hints}
    with torch.no_grad():
        return from_torch(work.peer, tuple(arguments), dynamic_shapes=tuple(dynamic), name=name, hints=hints)
