"""Strides of views: what a view op makes of strided memory."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from ait_mlir.dialects.ait.strided import ONE, ZERO, Strided
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dims import Scope

__all__ = ["ONE", "ZERO", "Strided", "through"]


def through(op: Operation, result: SSAValue, view: Strided, scope: Scope) -> Strided | None:
    """What the view op `op` makes of `view`, its operand, for one of its results; None where there are no strides."""
    assert isinstance(op, ViewLike) and isinstance(result, OpResult)
    return op.result_view(result.index, view, scope)
