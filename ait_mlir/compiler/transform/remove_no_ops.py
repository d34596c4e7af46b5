"""Removes operators without effect."""

from __future__ import annotations

from enum import Enum

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.jagged import JaggedIntVar
from ait_mlir.frontend.tensor import Tensor

__all__ = ["ExpandDimensionType", "JaggedIntVar", "remove_no_ops"]


class ExpandDimensionType(Enum):
    """The effect of an expand on a dim: it adds, repeats or keeps the dim."""

    ADD_DIM = 1
    EXPAND_DIM = 2
    KEEP_DIM = 3


def remove_no_ops(sorted_graph: list[Tensor]) -> list[Tensor]:
    """The graph without views that keep the shape, splits into one part, and concatenations of one tensor.

    If an output would become an input, an `identity` copies it.
    """
    return apply("remove_no_ops", sorted_graph)
