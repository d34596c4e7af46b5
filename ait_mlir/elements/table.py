"""The table of functions that write one element of an op's result."""

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

CONDITIONS: dict[str, Callable[[Operation], bool]] = {}
"""By op name: whether an op has elements; ops without a condition have."""

__all__ = ["ROWS", "NoElements", "elements_of", "has_elements"]


def elements_of(
    *op_classes: type[OpT], when: Callable[[OpT], bool] | None = None
) -> Callable[[RowOf[OpT]], RowOf[OpT]]:
    """Register the function for ops of these classes, or for those that meet a condition; `ValueError` if a class has
    one already."""

    def register(row: RowOf[OpT]) -> RowOf[OpT]:
        for op_class in op_classes:
            if op_class.name in ROWS:
                raise ValueError(f"{op_class.name} has two rows of elements; remove one")
            ROWS[op_class.name] = cast(Row, row)
            if when is not None:
                CONDITIONS[op_class.name] = cast("Callable[[Operation], bool]", when)
        return row

    return register


def has_elements(op: Operation) -> bool:
    """Whether the table has a function for an op. The function may still raise `NoElements`, for a property or an
    index.
    """
    return op.name in ROWS and (op.name not in CONDITIONS or CONDITIONS[op.name](op))
