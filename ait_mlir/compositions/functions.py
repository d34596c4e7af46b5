"""Functions of each element that are more than one op: roundings, divisions, powers, activations.

Operands have one element type and broadcast; parameters are numbers or values.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Operand, Writer
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import LARGEST, integer_range, is_float
from ait_mlir.dialects.ait.elementwise import BitXorOp, ClampOp, PowOp
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.types import tensor_type

MOST_PRODUCTS = 8
"""The largest whole exponent of a power that is written as products."""


def element_of(*operands: Operand) -> Attribute:
    """The element type of operands, at least one of which is a value."""
    return next(tensor_type(v).element_type for v in operands if isinstance(v, SSAValue))


def _value(w: Writer, x: Operand, element: Attribute) -> SSAValue:
    return x if isinstance(x, SSAValue) else w.number(x, element)


def _select(w: Writer, predicate: str, x: SSAValue, y: Operand, then: Operand, otherwise: Operand) -> SSAValue:
    """`then` where `x PREDICATE y`, else `otherwise`; at least one of these is a value."""
    return w.where(w.compare(predicate, x, y), then, otherwise)


# ** roundings: integers stay as they are **


def floor(w: Writer, x: SSAValue) -> SSAValue:
    return w.pointwise("floor", x) if is_float(element_of(x)) else x


def ceil(w: Writer, x: SSAValue) -> SSAValue:
    """-floor(-x)"""
    return w.neg(floor(w, w.neg(x))) if is_float(element_of(x)) else x


def trunc(w: Writer, x: SSAValue) -> SSAValue:
    """x rounded towards zero."""
    return _select(w, "lt", x, 0, ceil(w, x), floor(w, x)) if is_float(element_of(x)) else x


def round_to_even(w: Writer, x: SSAValue) -> SSAValue:
    """x rounded to the nearest whole number, a tie to the even number."""
    return w.pointwise("round", x) if is_float(element_of(x)) else x


def round_decimals(w: Writer, x: SSAValue, decimals: int) -> SSAValue:
    """x rounded to `decimals` places after the decimal point; a negative number counts places before it."""
    factor = 10.0 ** abs(decimals)
    if decimals > 0:
        return w.div(round_to_even(w, w.mul(x, factor)), factor)
    return w.mul(round_to_even(w, w.div(x, factor)), factor)


# ** signs **


def sign(w: Writer, x: SSAValue) -> SSAValue:
    """The sign of x: 1, 0 or -1; 0 for NaN."""
    return _select(w, "gt", x, 0, 1, _select(w, "lt", x, 0, w.scalar_like(-1, x), 0))


def copy_sign(w: Writer, a: SSAValue, b: SSAValue) -> SSAValue:
    """The magnitude of a with the sign of b, also of a signed zero."""
    size = w.pointwise("abs", a)
    negative = w.neg(size)
    of_zeros = _select(w, "lt", w.div(1, b), 0, negative, size)
    return _select(w, "lt", b, 0, negative, of_zeros)


def has_sign(w: Writer, x: SSAValue) -> SSAValue:
    """Whether a number is below 0 or is -0.0; NaN never is."""
    if is_float(element_of(x)):  # 1 / x is infinite, with the sign of the zero
        x = _select(w, "eq", x, 0, w.div(1, x), x)
    return w.compare("lt", x, 0)


def angle(w: Writer, x: SSAValue) -> SSAValue:
    """The angle of a real number: pi below 0, else 0; NaN stays NaN."""
    return _select(w, "lt", x, 0, math.pi, _select(w, "eq", x, x, 0, x))


def number_or_nan(w: Writer, op: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """The larger or smaller of two numbers (`op`: max or min); of a number and NaN, the number."""
    found = w.pointwise(op, a, b)
    if not is_float(element_of(a)):
        return found
    return _select(w, "ne", a, a, b, _select(w, "ne", b, b, a, found))


# ** bits of integers; booleans **


def invert(w: Writer, x: SSAValue) -> SSAValue:
    """`not x` of booleans; all bits of integers inverted."""
    element = element_of(x)
    if element == i1:
        return w.where(x, w.scalar(0, i1), 1)
    low, high = integer_range(element) or (-1, 0)
    return w.pointwise(BitXorOp, x, -1 if low < 0 else high)


def bit_and(w: Writer, a: Operand, b: Operand) -> SSAValue:
    element = element_of(a, b)
    return w.both(_value(w, a, element), _value(w, b, element)) if element == i1 else w.pointwise("bit_and", a, b)


def bit_or(w: Writer, a: Operand, b: Operand) -> SSAValue:
    element = element_of(a, b)
    return w.either(_value(w, a, element), _value(w, b, element)) if element == i1 else w.pointwise("bit_or", a, b)


def bit_xor(w: Writer, a: Operand, b: Operand) -> SSAValue:
    element = element_of(a, b)
    return w.compare("ne", _value(w, a, element), b) if element == i1 else w.pointwise(BitXorOp, a, b)


# ** divisions **


def _is_above(w: Writer, rest: SSAValue, b: Operand) -> SSAValue:
    """Whether a truncated division with this remainder gives more than the one rounded down: rest and b
    differ in sign.
    """
    element = element_of(rest)
    if not is_float(element):
        return w.both(w.compare("ne", rest, 0), w.compare("lt", w.pointwise(BitXorOp, rest, b), 0))
    signs = [w.compare("lt", _value(w, x, element), 0) for x in (rest, b)]
    return w.both(w.compare("ne", rest, 0), w.compare("ne", *signs))


DIVIDED_BY_ZERO = "an integer is divided by 0"


def divisor(w: Writer, b: SSAValue) -> SSAValue:
    """b; if b has integers, a run on a CPU fails where one of them is 0, as in PyTorch. On a GPU the quotient is 0.

    Constants without a 0 need no check.
    """
    t = tensor_type(b)
    if is_float(t.element_type) or (isinstance(b.owner, ConstantOp) and 0 not in b.owner.values()):
        return b
    is_zero = w.reduce("max", w.compare("eq", b, 0), range(t.rank))
    table = w.reshape(w.scalar(0, t.element_type), [1])  # has index 0 only
    nothing = w.put(GatherOp(table, [w.reshape(w.cast(is_zero, i64), [1])], [0], [], DIVIDED_BY_ZERO))
    return w.add(b, w.reshape(nothing, []))


def remainder(w: Writer, a: Operand, b: Operand) -> SSAValue:
    """The remainder of a division that is rounded down; it has the sign of b."""
    rest = w.rem(a, b)
    return w.where(_is_above(w, rest, b), w.add(rest, b), rest)


def floor_divide(w: Writer, a: Operand, b: SSAValue) -> SSAValue:
    """a / b, rounded down.

    Of floats as in PyTorch and Python, since a / b may round up to a whole number that b does not reach.
    """
    if not is_float(element_of(a, b)):
        return integer_quotient(w, a, b)
    rest = w.rem(a, b)
    exact = w.div(w.sub(a, rest), b)
    exact = w.where(_is_above(w, rest, b), w.sub(exact, 1), exact)
    low = floor(w, exact)
    whole = _select(w, "gt", w.sub(exact, low), 0.5, w.add(low, 1), low)
    return _select(w, "eq", b, 0, w.div(a, b), whole)


def trunc_divide(w: Writer, a: Operand, b: Operand) -> SSAValue:
    """a / b, rounded towards zero."""
    return trunc(w, w.div(a, b))


def integer_quotient(w: Writer, a: Operand, b: Operand) -> SSAValue:
    """a / b of integers, rounded down."""
    quotient = w.div(a, b)
    rest = w.sub(a, w.mul(quotient, b))
    return w.where(_is_above(w, rest, b), w.sub(quotient, 1), quotient)


def floor_of_quotient(w: Writer, a: Operand, b: Operand) -> SSAValue:
    """a / b, rounded down; of floats, the floor of the rounded quotient."""
    return floor(w, w.div(a, b)) if is_float(element_of(a, b)) else integer_quotient(w, a, b)


def reciprocal(w: Writer, x: SSAValue) -> SSAValue:
    return w.div(1, x)


def least_common_multiple(w: Writer, a: SSAValue, b: SSAValue) -> SSAValue:
    """|a / gcd(a, b) * b|; 0 if a or b is 0."""
    return w.pointwise("abs", w.mul(w.div(a, w.pointwise("gcd", a, b)), b))


# ** powers **


def power(w: Writer, x: Operand, n: Operand) -> SSAValue:
    """x ** n: products for small whole exponents, roots for exponents of a half, shifts for integer powers of 2."""
    element = element_of(x, n)
    if isinstance(x, SSAValue) and isinstance(n, int | float):
        if is_float(element) and n in (0.5, -0.5):
            return w.pointwise("sqrt" if n > 0 else "rsqrt", x)
        if 1 <= abs(n) <= MOST_PRODUCTS and n == int(n):
            return whole_power(w, x, int(n))
    if is_float(element):
        return w.pointwise(PowOp, x, n)
    base = _value(w, x, element)
    if x == 2 and element != i1:  # exponents out of range give 0
        return w.pointwise("shift_left", w.scalar(1, element), n)
    if not isinstance(n, int | float) or n < 0:
        return _power_by_bits(w, base, _value(w, n, element))
    result, left = w.scalar(1, element), int(n)
    while left:
        result = w.mul(result, base) if left & 1 else result
        left >>= 1
        base = w.mul(base, base) if left else base
    return result


def whole_power(w: Writer, x: SSAValue, n: int) -> SSAValue:
    """x ** n as |n| - 1 products, for n other than 0."""
    result = x
    for _ in range(abs(n) - 1):
        result = w.mul(result, x)
    return w.div(1, result) if n < 0 else result


def _power_by_bits(w: Writer, x: SSAValue, n: SSAValue) -> SSAValue:
    """x ** n of integers, with a square for each bit of the exponent; for a negative n, 1 / x ** -n rounded towards
    zero.
    """
    element = element_of(x)
    if element == i1:
        raise w.unsupported("powers of booleans are not supported; use a where of the two")
    _, largest = integer_range(element) or (0, 0)
    one = w.scalar(1, element)
    result, square = one, x
    for bit in range(largest.bit_length()):
        is_set = w.pointwise("bit_and", n, 1 << bit)
        result = _select(w, "ne", is_set, 0, w.mul(result, square), result)
        square = w.mul(square, square)
    odd = _select(w, "eq", w.pointwise("bit_and", n, 1), 0, one, x)
    inverse = _select(w, "eq", x, 1, one, _select(w, "eq", x, -1, odd, 0))
    return _select(w, "lt", n, 0, inverse, result)


# ** activations, of floats **


def clamp(w: Writer, x: SSAValue, low: Operand | None, high: Operand | None) -> SSAValue:
    """min(max(x, low), high), without a bound that is None; NaN stays NaN. With numbers as bounds it is one op."""
    element = element_of(x)
    if low is None and high is None:
        return x
    if all(_may_bound(bound, element) for bound in (low, high)):
        return w.put(ClampOp(x, low, high))  # pyright: ignore[reportArgumentType]
    x = x if low is None else w.maximum(x, low)
    return x if high is None else w.minimum(x, high)


def _may_bound(bound: Operand | None, element: Attribute) -> bool:
    """Whether `ait.clamp` of this element type may have the bound."""
    if bound is None:
        return True
    return isinstance(bound, int | float) and element != i1 and ClampOp.find_mistake(bound, element) is None


def hard_sigmoid(w: Writer, x: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6) / 6"""
    return w.div(clamp(w, w.add(x, 3), 0.0, 6.0), 6)


def hard_swish(w: Writer, x: SSAValue) -> SSAValue:
    """x * min(max(x + 3, 0), 6) / 6 (arXiv:1905.02244)."""
    return w.mul(x, hard_sigmoid(w, x))


def leaky_relu(w: Writer, x: SSAValue, slope: Operand = 0.01) -> SSAValue:
    """x above 0, else slope * x."""
    return _select(w, "gt", x, 0, x, w.mul(x, slope))


def elu(w: Writer, x: SSAValue, alpha: Operand = 1.0, scale: Operand = 1.0, inner: Operand = 1.0) -> SSAValue:
    """scale * x above 0, else scale * alpha * (exp(inner * x) - 1) (arXiv:1511.07289)."""
    factor = alpha * scale if isinstance(alpha, float) and isinstance(scale, float) else alpha
    negative = _times(w, w.pointwise("expm1", _times(w, x, inner)), factor)
    return _select(w, "gt", x, 0, _times(w, x, scale), negative)


def celu(w: Writer, x: SSAValue, alpha: Operand = 1.0) -> SSAValue:
    """x above 0, else alpha * (exp(x / alpha) - 1) (arXiv:1704.07483)."""
    is_known = isinstance(alpha, int | float)
    return elu(w, x, alpha, inner=1 / alpha if is_known else w.div(1, _value(w, alpha, element_of(x))))


def _times(w: Writer, x: SSAValue, factor: Operand) -> SSAValue:
    return x if isinstance(factor, int | float) and factor == 1 else w.mul(x, factor)


def softplus(w: Writer, x: SSAValue, beta: Operand = 1.0, threshold: Operand = 20.0) -> SSAValue:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold."""
    scaled = _times(w, x, beta)
    smooth = w.pointwise("log1p", w.pointwise("exp", scaled))
    return _select(w, "gt", scaled, threshold, x, smooth if scaled is x else w.div(smooth, beta))


def soft_shrink(w: Writer, x: SSAValue, width: float = 0.5) -> SSAValue:
    """x moved towards 0 by `width`, which is not negative; 0 where |x| is at most that. NaN stays NaN."""
    above = _select(w, "gt", x, width, w.sub(x, width), w.mul(x, 0))
    return _select(w, "lt", x, -width, w.add(x, width), above)


def threshold(w: Writer, x: SSAValue, limit: Operand, value: Operand) -> SSAValue:
    """`value` where x is at most `limit`, else x; NaN stays NaN."""
    return _select(w, "le", x, limit, value, x)


def softsign(w: Writer, x: SSAValue) -> SSAValue:
    """x / (|x| + 1)"""
    return w.div(x, w.add(w.pointwise("abs", x), 1))


def nan_to_num(
    w: Writer, x: SSAValue, nan: Operand | None = None, posinf: Operand | None = None, neginf: Operand | None = None
) -> SSAValue:
    """x with NaN and infinities replaced, by default by 0 and the ends of the type's range. Integers are unchanged."""
    element = element_of(x)
    if not is_float(element):
        return x
    largest = LARGEST[element]
    y = clamp(w, x, -largest if neginf is None else None, largest if posinf is None else None)
    y = y if posinf is None else _select(w, "eq", x, math.inf, posinf, y)
    y = y if neginf is None else _select(w, "eq", x, -math.inf, neginf, y)
    return _select(w, "ne", x, x, 0 if nan is None else nan, y)


def clamp_nan_to_num(w: Writer, x: SSAValue, low: Operand, high: Operand, nan: Operand = 0.0) -> SSAValue:
    """min(max(x, low), high), and `nan` for NaN."""
    return _select(w, "ne", x, x, nan, clamp(w, x, low, high))
