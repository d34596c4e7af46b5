"""The operations of a graph, one file for each family."""

from __future__ import annotations

from ait_mlir.graph.nodes import Operation
from ait_mlir.graph.operations import conv, matmul, moe, norm, pointwise, reduction, sdpa, shape
from ait_mlir.graph.operations.refused import REFUSED

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for family in (pointwise, matmul, moe, conv, norm, reduction, shape, sdpa)
    for operation in family.OPERATIONS
}

__all__ = ["OPERATIONS", "REFUSED"]
