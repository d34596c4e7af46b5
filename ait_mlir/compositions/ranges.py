"""Ranges of numbers."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import bf16, f16, f32, f64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import INTEGERS, Affine, Value, spread
from ait_mlir.building.writer import Writer
from ait_mlir.dims import Expr

EXACT_INTEGERS: dict[Attribute, int] = {f16: 2**11, bf16: 2**8, f32: 2**24, f64: 2**53}
"""The largest number up to which a float type has all integers."""


def arange(w: Writer, start: Expr, step: Expr, count: Expr, element: Attribute) -> Value:
    """`count` numbers start, start + step, ...: integers are a formula, other numbers are counted in their type or
    cast from a formula.
    """
    numbers = Affine((count,), (step,), start)
    if element in INTEGERS:
        return replace(numbers, element=element)
    found = counted(w, numbers, element)
    return spread(w.cast(w.natural(numbers), element) if found is None else found, (count,))


def counted(w: Writer, numbers: Affine, element: Attribute) -> SSAValue | None:
    """The numbers of a formula, computed in a float type that has all of them exactly; None for other types."""
    extremes = [w.scope.bounds(numbers.offset)]
    for step, extent in zip(numbers.steps, numbers.dims, strict=True):
        extremes.append(w.scope.bounds(step * (extent - 1)))
    low, high = sum(min(low, 0) for low, _ in extremes), sum(max(high, 0) for _, high in extremes)
    if max(-low, high) > EXACT_INTEGERS.get(element, -1):
        return None
    return w.natural(replace(numbers, element=element))
