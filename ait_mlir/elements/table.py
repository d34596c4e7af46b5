"""The table of ops that can say how one element of a result is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, cast

from xdsl.ir import Operation, SSAValue

from ait_mlir.elements.writer import ElementWriter, Index, NoElements

OpT = TypeVar("OpT", bound=Operation)
RowOf: TypeAlias = Callable[[OpT, ElementWriter, int, Sequence[Index]], SSAValue]
Row: TypeAlias = "RowOf[Operation]"

ROWS: dict[str, Row] = {}
"""By op name: writes the scalar at an index of a result, given by its position."""

__all__ = ["ROWS", "NoElements", "elements_of", "has_elements"]


def elements_of(*op_classes: type[OpT]) -> Callable[[RowOf[OpT]], RowOf[OpT]]:
    """Register how ops of these classes compute an element; `ValueError` if one has a row already."""

    def register(row: RowOf[OpT]) -> RowOf[OpT]:
        for op_class in op_classes:
            if op_class.name in ROWS:
                raise ValueError(f"{op_class.name} has two rows of elements; remove one")
            ROWS[op_class.name] = cast(Row, row)
        return row

    return register


def has_elements(op: Operation) -> bool:
    """Whether the table has a row for an op; the row may still raise `NoElements` for its properties or indices."""
    return op.name in ROWS
