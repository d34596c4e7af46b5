"""Algebra that removes operations: neutral elements, no-ops, identities.

A value replaces a result only if both have the same type: `x + 0` with a constant of a larger shape, or a cast, is not
an identity.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i64

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns

# x op n = x, for the neutral element n on the right
RIGHT_NEUTRAL = (("add", 0), ("sub", 0), ("mul", 1), ("div", 1), ("pow", 1))
# n op x = x, for the neutral element n on the left
LEFT_NEUTRAL = (("add", 0), ("mul", 1))
# f(f(x)) = x
INVOLUTIONS = ("neg",)
# f(f(x)) = f(x)
IDEMPOTENT = ("relu",)
# f(x, x) = x
SELECTIONS = ("max", "min")


@pattern(over=RIGHT_NEUTRAL)
def right_neutral(p: PatternBuilder, mnemonic: str, neutral: int) -> None:
    """x + 0, x - 0, x * 1, x / 1, pow(x, 1) = x"""
    x, n = p.values(2)
    root = p.op(f"ait.{mnemonic}", [x, n])
    p.require("is_splat", n, IntegerAttr(neutral, i64))
    p.require("same_type", p.result(root), x)
    p.replace(root, x)


@pattern()
def square(p: PatternBuilder) -> None:
    """pow(x, 2) = x * x"""
    x, n = p.values(2)
    root = p.op("ait.pow", [x, n])
    p.require("is_splat", n, IntegerAttr(2, i64))
    p.require("same_type", p.result(root), x)
    p.replace(root, p.new("ait.mul", [x, x]))


@pattern(over=LEFT_NEUTRAL)
def left_neutral(p: PatternBuilder, mnemonic: str, neutral: int) -> None:
    """0 + x, 1 * x = x"""
    n, x = p.values(2)
    root = p.op(f"ait.{mnemonic}", [n, x])
    p.require("is_splat", n, IntegerAttr(neutral, i64))
    p.require("same_type", p.result(root), x)
    p.replace(root, x)


@pattern(over=INVOLUTIONS)
def involution(p: PatternBuilder, mnemonic: str) -> None:
    """-(-x) = x"""
    x = p.value()
    inner = p.op(f"ait.{mnemonic}", [x])
    root = p.op(f"ait.{mnemonic}", [p.result(inner)])
    p.replace(root, x)


@pattern(over=IDEMPOTENT)
def idempotent(p: PatternBuilder, mnemonic: str) -> None:
    """relu(relu(x)) = relu(x)"""
    inner = p.op(f"ait.{mnemonic}", [p.value()])
    root = p.op(f"ait.{mnemonic}", [p.result(inner)])
    p.replace(root, p.result(inner))


@pattern(over=SELECTIONS)
def selection(p: PatternBuilder, mnemonic: str) -> None:
    """max(x, x) = min(x, x) = x"""
    x = p.value()
    root = p.op(f"ait.{mnemonic}", [x, x])
    p.replace(root, x)


@pattern()
def where_of_equal_branches(p: PatternBuilder) -> None:
    """where(c, x, x) = x, unless the condition has the larger shape"""
    c, x = p.values(2)
    root = p.op("ait.where", [c, x, x])
    p.require("same_type", p.result(root), x)
    p.replace(root, x)


@pattern()
def cast_to_same_type(p: PatternBuilder) -> None:
    """cast(x) to the type of x = x"""
    x = p.value()
    root = p.op("ait.cast", [x])
    p.require("same_type", p.result(root), x)
    p.replace(root, x)


@pattern()
def cast_of_exact_cast(p: PatternBuilder) -> None:
    """cast(cast(x)) = cast(x), where the inner cast loses nothing"""
    x, t = p.value(), p.type()
    inner = p.op("ait.cast", [x])
    root = p.op("ait.cast", [p.result(inner)], types=[t])
    p.require("widens_exactly", x, p.result(inner))
    p.replace(root, p.new("ait.cast", [x], types=[t]))


@pattern(over=(0, 1))
def silu_of_sigmoid(p: PatternBuilder, position: int) -> None:
    """x * sigmoid(x) = sigmoid(x) * x = silu(x)"""
    x = p.value()
    gate = p.result(p.op("ait.sigmoid", [x]))
    root = p.op("ait.mul", [x, gate] if position else [gate, x])
    p.require("one_use", gate)
    p.replace(root, p.new("ait.silu", [x]))


@pattern(over=(("mul", math.sqrt(0.5)), ("div", math.sqrt(2.0))))
def gelu_of_erf(p: PatternBuilder, mnemonic: str, number: float) -> None:
    """(x * 0.5) * (erf(x / sqrt(2)) + 1) = gelu(x)"""
    x, half, root_of_two, one = p.values(4)
    scaled = p.op(f"ait.{mnemonic}", [x, root_of_two])
    raised = p.op("ait.add", [p.result(p.op("ait.erf", [p.result(scaled)])), one])
    root = p.op("ait.mul", [p.result(p.op("ait.mul", [x, half])), p.result(raised)])
    for value, found in ((half, 0.5), (root_of_two, number), (one, 1.0)):
        p.require("is_rounded_splat", value, FloatAttr(found, f64))
    p.require("same_type", p.result(root), x)
    p.replace(root, p.new("ait.gelu", [x]))


@pattern(over=("sum", "factor"))
def fast_gelu_of_tanh(p: PatternBuilder, cube: str) -> None:
    """(x * 0.5) * (tanh((x + x * x * x * 0.044715) * sqrt(2 / pi)) + 1) = fast_gelu(x), or with x as a factor"""
    x, half, cubic, scale, one = p.values(5)
    if cube == "sum":
        third = p.op("ait.mul", [p.result(p.op("ait.mul", [x, x])), x])
        inner = p.op("ait.add", [x, p.result(p.op("ait.mul", [p.result(third), cubic]))])
        argument = p.op("ait.mul", [p.result(inner), scale])
    else:  # (x * sqrt(2 / pi)) * (x * 0.044715 * x + 1)
        second = p.op("ait.mul", [p.result(p.op("ait.mul", [x, cubic])), x])
        inner = p.op("ait.add", [p.result(second), one])
        argument = p.op("ait.mul", [p.result(p.op("ait.mul", [x, scale])), p.result(inner)])
    raised = p.op("ait.add", [p.result(p.op("ait.tanh", [p.result(argument)])), one])
    root = p.op("ait.mul", [p.result(p.op("ait.mul", [x, half])), p.result(raised)])
    for value, found in ((half, 0.5), (cubic, 0.044715), (scale, math.sqrt(2 / math.pi)), (one, 1.0)):
        p.require("is_rounded_splat", value, FloatAttr(found, f64))
    p.require("same_type", p.result(root), x)
    p.replace(root, p.new("ait.fast_gelu", [x]))


NEUTRAL = patterns(right_neutral, square, left_neutral)
IDENTITIES = patterns(involution, idempotent, selection, where_of_equal_branches, cast_to_same_type, cast_of_exact_cast)
ACTIVATIONS = patterns(silu_of_sigmoid, gelu_of_erf, fast_gelu_of_tanh)

ALGEBRA = NEUTRAL + IDENTITIES + ACTIVATIONS
