"""Merges nested concatenations, splits and slices."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.ops.view import dynamic_slice
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = ["dynamic_slice", "toposort", "transform_memory_ops"]


def transform_memory_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with fewer copies: nested concatenations and splits merged, and slices of a concatenation taken
    directly from its operands.

    Copies that strides make unnecessary are removed after lowering (`transform_strided_ops`).
    """
    return apply("transform_memory_ops", sorted_graph, workdir)
