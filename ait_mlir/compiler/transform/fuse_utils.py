"""Helpers for hand-written transformations to find operators to fuse."""

from __future__ import annotations

from collections.abc import Collection

from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum


def extract_only_one_op(ops: Collection[Operator]) -> Operator | None:
    """The operator, if there is exactly one."""
    return next(iter(ops)) if len(ops) == 1 else None


def is_elementwise_type(op: Operator, elementwise_type: FuncEnum) -> bool:
    """Whether the operator is elementwise and computes this function."""
    return op.attrs["op"] == "elementwise" and op.attrs["func"] == elementwise_type
