"""Operators without effect go."""

from __future__ import annotations

from enum import Enum

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.jagged import JaggedIntVar
from ait_mlir.frontend.tensor import Tensor

__all__ = ["ExpandDimensionType", "JaggedIntVar", "remove_no_ops"]


class ExpandDimensionType(Enum):
    """What an expand does to a dim: adds it, repeats it, or keeps it."""

    ADD_DIM = 1
    EXPAND_DIM = 2
    KEEP_DIM = 3


def remove_no_ops(sorted_graph: list[Tensor]) -> list[Tensor]:
    """The graph without views to the shape a tensor has, splits into one part, concats of one tensor.

    A result that would be an input stays: it is copied by an `identity`.
    """
    return apply("remove_no_ops", sorted_graph)
