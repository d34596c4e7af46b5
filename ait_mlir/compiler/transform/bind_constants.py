"""Binds data to the weights of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ait_mlir.arguments import checked
from ait_mlir.frontend.compile import as_array
from ait_mlir.frontend.constant_data import check_data
from ait_mlir.frontend.errors import ArgumentError, BuildError
from ait_mlir.frontend.tensor import Tensor


@checked(ArgumentError)
def bind_constants(graph: Sequence[Tensor], constants: Mapping[str, Any]) -> None:
    """Bind data to the weights of a graph, by name: NumPy arrays, torch tensors or `AITData` of their shape and dtype.

    Bound weights are part of the artifact, and `constant_folding` computes values that depend only on them. Raises
    `BuildError` for a name that no weight of the graph has, for a weight that has data, and for data of another shape
    or dtype; then no weight is bound.
    """
    weights = {t.name: t for t in graph if t.is_param and t.name} | {
        t.attrs["original_name"]: t for t in graph if t.is_param and t.attrs["original_name"]
    }
    found: list[tuple[Tensor, Any]] = []
    for name, value in constants.items():
        if name not in weights:
            raise BuildError(f'the graph has no weight "{name}"; its weights are {", ".join(weights) or "none"}')
        if weights[name].data is not None:
            raise BuildError(f"Tensor {name} is already bound! Leave it out of the constants")
        array = as_array(value)
        check_data(f'the weight "{name}"', weights[name].type, array)
        found.append((weights[name], array))
    for tensor, array in found:
        tensor.bind(array)
