"""The amounts that estimates use: bytes moved, and the dims for which estimates are made."""

from __future__ import annotations

from xdsl.ir import Operation

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Scope

FEW_ELEMENTS = 1 << 16
"""A GPU accesses so many elements, each in a sector of its own, in less time than it starts a launch."""


def estimate_env(scope: Scope) -> dict[str, int]:
    """The dims at which estimates are made: the largest hint, else the maximum."""
    return {dim.name: max(dim.hints) if dim.hints else dim.hi for dim in scope.dims}


def bytes_moved(op: Operation, scope: Scope) -> int:
    """The bytes that `op` reads and writes, at `estimate_env`."""
    assert isinstance(op, Cost), f"{op.name} does not say what it touches"
    return op.bytes_touched().evaluate(estimate_env(scope))


def element_bytes(t: TensorType) -> int:
    return BY_IR[t.element_type].bytes
