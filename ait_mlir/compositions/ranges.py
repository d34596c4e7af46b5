"""Ranges of numbers."""

from __future__ import annotations

from xdsl.ir import Attribute

from ait_mlir.building.formulas import INTEGERS, Affine, Value, spread
from ait_mlir.building.writer import Writer
from ait_mlir.dims import Expr


def arange(w: Writer, start: Expr, step: Expr, count: Expr, element: Attribute) -> Value:
    """`count` numbers start, start + step, ...: integers are a formula, other numbers are cast from one."""
    if element in INTEGERS:
        return Affine((count,), (step,), start, element)
    return spread(w.cast(w.natural(Affine((count,), (step,), start)), element), (count,))
