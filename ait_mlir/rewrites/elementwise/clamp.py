"""Rewrites minimum and maximum with constants to `ait.clamp`."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.elementwise import ClampOp
from ait_mlir.dialects.ait.numbers import number_attr
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of, splat
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern()
def min_of_max(p: PatternBuilder) -> None:
    """min(max(x, a), b) = clamp(x, a, b), for numbers a and b"""
    x, low, high = p.values(3)
    inner = p.op("ait.max", [x, low], in_any_order=True)
    root = p.op("ait.min", [p.result(inner), high], in_any_order=True)
    for bound in (low, high):
        p.require("is_bound", bound)
    p.require("one_use", p.result(inner))
    p.require("same_type", p.result(root), x)
    p.replace(root, "clamp_between", x, low, high)


@pattern()
def max_of_min(p: PatternBuilder) -> None:
    """max(min(x, b), a) = clamp(x, a, b), for numbers a <= b"""
    x, low, high = p.values(3)
    inner = p.op("ait.min", [x, high], in_any_order=True)
    root = p.op("ait.max", [p.result(inner), low], in_any_order=True)
    p.require("are_bounds_in_order", low, high)
    p.require("one_use", p.result(inner))
    p.require("same_type", p.result(root), x)
    p.replace(root, "clamp_between", x, low, high)


@pattern()
def min_of_relu(p: PatternBuilder) -> None:
    """min(relu(x), b) = clamp(x, 0, b), for a number b"""
    x, high = p.values(2)
    inner = p.op("ait.relu", [x])
    root = p.op("ait.min", [p.result(inner), high], in_any_order=True)
    p.require("is_bound", high)
    p.require("one_use", p.result(inner))
    p.require("same_type", p.result(root), x)
    p.replace(root, "clamp_from_zero", x, high)


@pattern(over=(0, 0.0))
def clamp_at_zero(p: PatternBuilder, zero: float) -> None:
    """clamp(x, min 0) = relu(x)"""
    x = p.value()
    root = p.op("ait.clamp", [x], {"min": number_attr(zero)})
    p.require("no_attribute", root, "max")
    p.replace(root, p.new("ait.relu", [x]))


CLAMP = patterns(min_of_max, max_of_min, min_of_relu, clamp_at_zero)


# ** constraints and natives **


@constraint
def is_bound(value: SSAValue) -> bool:
    """The value is an `ait.constant` of one number for all elements that can bound a clamp: not NaN, not boolean."""
    number = splat(value)
    return number is not None and element_type_of(value) != i1 and number == number


@constraint
def are_bounds_in_order(low: SSAValue, high: SSAValue) -> bool:
    """Both values satisfy `is_bound`, and the first is not above the second."""
    a, b = splat(low), splat(high)
    return is_bound(low) and is_bound(high) and a is not None and b is not None and a <= b


@native
def clamp_between(r: Rewriter, x: SSAValue, low: SSAValue, high: SSAValue) -> Operation:
    """A clamp of x between the numbers of two constants."""
    bounds = {name: number_attr(n) for name, v in (("min", low), ("max", high)) if (n := splat(v)) is not None}
    return r.create(ClampOp, [x], [x.type], bounds)


@native
def clamp_from_zero(r: Rewriter, x: SSAValue, high: SSAValue) -> Operation:
    """A clamp of x between 0 and the number of a constant."""
    number = splat(high)
    assert number is not None, "clamp_from_zero needs is_bound"
    return r.create(ClampOp, [x], [x.type], {"min": number_attr(type(number)(0)), "max": number_attr(number)})
