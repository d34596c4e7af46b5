"""Helpers of the rows of several families."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.onnx.call import Call


def broadcast(c: Call, values: Sequence[SSAValue] | None = None) -> list[SSAValue]:
    """The inputs of a node whose operands broadcast; dims of inputs that meet become one dim."""
    found = c.tensors() if values is None else list(values)
    rank = max((tensor_type(v).rank for v in found), default=0)
    for axis in range(1, rank + 1):
        sizes = [d for v in found if tensor_type(v).rank >= axis and (d := tensor_type(v).dims[-axis]).as_int() != 1]
        for size in sizes[1:]:
            c.same(sizes[0], size)
    return found


def spatial(c: Call, name: str, rank: int, usual: int) -> list[int]:
    """An attribute with a number for each spatial dim."""
    found = c.int_list(name, default=[usual] * rank)
    if found is None or len(found) != rank:
        raise c.w.unsupported(f"attribute {name} is {found}, expected {rank} numbers")
    return found
