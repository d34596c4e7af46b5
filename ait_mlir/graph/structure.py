"""The structure of a graph: everything that its code depends on except for sizes, which are listed in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.copying import OWN_DIMS
from ait_mlir.graph.extents import Trace
from ait_mlir.graph.layout import layout_of
from ait_mlir.graph.numbers import numbers_of
from ait_mlir.graph.tensor import tensor

Step = tuple[str, int, int]
"""The stride of a dim: ("is", number, 0); or ("behind", dim, gap): the stride of another dim times its size plus
`gap`."""


@dataclass(frozen=True)
class Pattern:
    """The dims and strides of a tensor in terms of sizes: dims above 1 are sizes, other dims are constants."""

    dims: tuple[int | None, ...]
    strides: tuple[Step, ...]

    def dims_of(self, trace: Trace, first: int) -> tuple[int, ...]:
        """The dims as extents; `first` is the index of the tensor's first size."""
        found: list[int] = []
        for constant in self.dims:
            found.append(trace.size(first) if constant is None else constant)
            first += constant is None
        return tuple(found)

    def strides_of(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The strides for these dims."""
        found: dict[int, int] = {}

        def stride(axis: int) -> int:
            if axis not in found:
                kind, value, gap = self.strides[axis]
                found[axis] = value if kind == "is" else stride(value) * (dims[value] + gap)
            return found[axis]

        return tuple(stride(axis) for axis in range(len(dims)))


def pattern_of(dims: Sequence[int], strides: Sequence[int]) -> tuple[Pattern, list[int], list[bool]]:
    """The strides of a tensor as rules over its dims, the dims above 1, and for each of these whether it is contiguous.

    The strides must be those of a block of memory (`layout_of`).
    """
    moving = [a for a, (n, s) in enumerate(zip(dims, strides, strict=True)) if n > 1 and s > 0]
    moving.sort(key=lambda a: (strides[a], a))
    steps: list[Step] = [("is", 0 if n > 1 else 1, 0) for n in dims]
    for inner, axis in zip([None, *moving], moving, strict=False):
        if inner is None:
            steps[axis] = ("is", strides[axis], 0)
            continue
        steps[axis] = ("behind", inner, strides[axis] // strides[inner] - dims[inner])
    for axis, n in enumerate(dims):
        if n == 1:  # its stride gives only its position in the order of the dims
            before = next((m for m in moving if strides[m] * dims[m] == strides[axis]), None)
            if before is not None:
                steps[axis] = ("behind", before, 0)
    pattern = Pattern(tuple(n if n < 2 else None for n in dims), tuple(steps))
    row = moving[0] if moving and strides[moving[0]] == 1 else None
    return pattern, [n for n in dims if n > 1], [a == row for a, n in enumerate(dims) if n > 1]


@dataclass
class Structure:
    """A graph without its sizes."""

    key: tuple[Any, ...]
    sizes: list[int]
    aligned: list[bool]
    """For each size, whether it is the length of a row in memory."""
    patterns: dict[tensor, tuple[Pattern, int | None, bool]]
    """For each tensor its pattern, the index of its first size if dims are given, and whether strides are given."""


def structure_of(graph: GraphBuilder) -> Structure | None:
    """The structure of a validated graph; None if the graph has a dim of 0, or an input whose dims are not nested."""
    arguments = numbers_of(graph, graph.code_scalars()).arguments
    used = {t for node in graph.nodes for t in (*node.reads(), *node.outputs.values())}
    tensors = [t for t in graph.tensors if t in used]
    index = {t: i for i, t in enumerate(tensors)}
    found = Structure((), [], [], {})
    rows: list[Any] = []
    for t in tensors:
        dims, strides = t.dims or (), t.strides or ()
        if 0 in dims:
            return None
        is_given = t.producer is None
        if is_given and layout_of(dims, strides, t.label, True).strides:
            return None
        own_dims = is_given or (t.producer is not None and t.producer.operation.name in OWN_DIMS)
        own_strides = is_given or t.has_own_strides
        shape = None
        if own_dims or own_strides:
            pattern, sizes, rows_of = pattern_of(dims, strides)
            found.patterns[t] = pattern, len(found.sizes) if own_dims else None, own_strides
            if own_dims:
                found.sizes += sizes
                found.aligned += rows_of
            shape = pattern, own_dims, own_strides
        ragged = None if t.ragged_offset is None else (index[t.ragged_offset], t.ragged_multiplier)
        number = t.value if t.is_constant and t not in arguments else None
        rows.append((t.dtype, t.is_virtual, t.is_by_value, number, ragged, shape))
    nodes = [
        (
            node.operation.name,
            node.compute,
            frozen(node.attributes),
            tuple((port, index[t]) for port, t in node.inputs.items()),
            tuple((port, tuple(index[t] for t in several)) for port, several in node.lists.items()),
            tuple((port, index[t]) for port, t in node.outputs.items()),
        )
        for node in graph.nodes
    ]
    found.key = (*rows, *nodes)
    return found


def frozen(value: Any) -> Any:
    """An attribute as a hashable value."""
    if isinstance(value, dict):
        return tuple((k, frozen(v)) for k, v in cast("dict[Any, Any]", value).items())
    if isinstance(value, list | tuple):
        return tuple(frozen(v) for v in cast("list[Any]", value))
    if isinstance(value, slice):
        return repr(cast(Any, value))
    if isinstance(value, bool | float):  # True and 1.0 are equal, but not the same argument
        return type(value), value
    return value
