"""Functions that are written as several ops: roundings, powers, norms of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ait_mlir.building.known import Affine, Mask, Value
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import integer_range, is_float
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.rows.common import operand, spread
from ait_mlir.importers.torch.rows.elementwise import binary, compute
from ait_mlir.importers.torch.rows.reduction import axes_of, reduced


def _where(c: Call, predicate: str, x: SSAValue, y: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
    """`then` where `x PREDICATE y`, else `otherwise`."""
    condition = c.w.op(ait.CompareOp, x, y, properties={"predicate": predicate})
    return c.w.op(ait.WhereOp, condition, then, otherwise)


# ** roundings **


def floor(c: Call, x: SSAValue) -> SSAValue:
    return c.w.op(ait.FloorOp, x) if is_float(c.element) else x


def ceil(c: Call, x: SSAValue) -> SSAValue:
    """-floor(-x)"""
    return c.w.op(ait.NegOp, floor(c, c.w.op(ait.NegOp, x))) if is_float(c.element) else x


def truncate(c: Call, x: SSAValue) -> SSAValue:
    """Towards zero."""
    return _where(c, "lt", x, c.w.scalar(0, c.element), ceil(c, x), floor(c, x)) if is_float(c.element) else x


def round_to_even(c: Call, x: SSAValue) -> SSAValue:
    """To the nearest whole number; of two that are as near, to the even one."""
    if not is_float(c.element):
        return x
    half, two = c.w.scalar(0.5, c.element), c.w.scalar(2.0, c.element)
    low, high = floor(c, x), ceil(c, x)
    rest = c.w.op(ait.SubOp, x, low)
    even = c.w.op(ait.MulOp, floor(c, c.w.op(ait.MulOp, low, half)), two)
    nearest = _where(c, "lt", rest, half, low, high)
    return _where(c, "eq", rest, half, _where(c, "eq", low, even, low, high), nearest)


def round_decimals(c: Call, x: SSAValue) -> SSAValue:
    """Rounded to a number of places behind the point, or before it if less than 0."""
    places = int(c["decimals"])
    factor = c.w.scalar(10.0 ** abs(places), c.element)
    scaled, back = (ait.MulOp, ait.DivOp) if places > 0 else (ait.DivOp, ait.MulOp)
    return c.w.op(back, round_to_even(c, c.w.op(scaled, x, factor)), factor)


def extreme_number(op: type[AitOp]) -> Row:
    """The larger or smaller of two; of a number and NaN, the number."""

    def row(c: Call) -> Value:
        a, b = operand(c, "self", c.element), operand(c, "other", c.element)
        if is_float(c.element):
            return spread(_where(c, "ne", a, a, b, _where(c, "ne", b, b, a, c.w.op(op, a, b))), c.dims)
        return spread(c.w.op(op, a, b), c.dims)

    return row


def divided_down(c: Call, a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b, rounded down."""
    zero, one = c.w.scalar(0, c.element), c.w.scalar(1, c.element)
    rest = c.w.op(ait.RemOp, a, b)
    if not is_float(c.element):
        quotient = c.w.op(ait.DivOp, a, b)
        return _unlike(c, rest, b, c.w.op(ait.SubOp, quotient, one), quotient)
    # as in PyTorch and Python: a / b may round up to a whole number that b does not reach
    exact = c.w.op(ait.DivOp, c.w.op(ait.SubOp, a, rest), b)
    exact = _unlike(c, rest, b, c.w.op(ait.SubOp, exact, one), exact)
    low = c.w.op(ait.FloorOp, exact)
    far = c.w.op(ait.SubOp, exact, low)
    whole = _where(c, "gt", far, c.w.scalar(0.5, c.element), c.w.op(ait.AddOp, low, one), low)
    return _where(c, "eq", b, zero, c.w.op(ait.DivOp, a, b), whole)


def _unlike(c: Call, rest: SSAValue, b: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
    """`then` where a remainder is not 0 and has another sign than b."""
    zero = c.w.scalar(0, c.element)
    positive = _where(c, "gt", rest, zero, _where(c, "lt", b, zero, then, otherwise), otherwise)
    return _where(c, "lt", rest, zero, _where(c, "lt", b, zero, otherwise, then), positive)


def divide_rounding(c: Call) -> Value:
    """torch.div: exact, or rounded towards zero or down."""
    a, b = operand(c, "self", c.element), operand(c, "other", c.element)
    if c["rounding_mode"] == "floor":
        return spread(divided_down(c, a, b), c.dims)
    quotient = c.w.op(ait.DivOp, a, b)
    return spread(truncate(c, quotient) if c["rounding_mode"] == "trunc" else quotient, c.dims)


def remainder(c: Call) -> Value:
    """The remainder of division rounded down, which has the sign of b."""
    a, b = operand(c, "self", c.element), operand(c, "other", c.element)
    rest = c.w.op(ait.RemOp, a, b)
    return spread(_unlike(c, rest, b, c.w.op(ait.AddOp, rest, b), rest), c.dims)


# ** powers and functions **


def power(base: str, exponent: str) -> Row:
    """One to the power of the other; whole exponents and roots are products and roots, powers of 2 shifts."""

    def row(c: Call) -> Value:
        given = c.arguments[exponent]
        n = given.offset.as_int() if isinstance(given, Affine) and not given.moving_axes() else given
        x = operand(c, base, c.element)
        if isinstance(n, float) and n in (0.5, -0.5):
            return spread(c.w.op(ait.SqrtOp if n > 0 else ait.RsqrtOp, x), c.dims)
        if isinstance(n, int | float) and n == int(n) and 1 <= abs(n) <= 8:
            return spread(_whole_power(c, x, int(n)), c.dims)
        if not is_float(c.element):
            return spread(_integer_power(c, c.arguments[base], x, n, exponent), c.dims)
        return spread(c.w.op(ait.PowOp, x, operand(c, exponent, c.element)), c.dims)

    return row


def _integer_power(c: Call, base: object, x: SSAValue, n: object, exponent: str) -> SSAValue:
    """x ** n by squares, which wrap; 2 ** n by a shift, which leaves 0 of exponents out of range."""
    if base == 2 and c.element != i1:
        return c.w.op(ait.ShiftLeftOp, c.w.scalar(1, c.element), operand(c, exponent, c.element))
    if not isinstance(n, int | float) or n < 0:
        return _power_by_bits(c, x, operand(c, exponent, c.element))
    result, left = c.w.scalar(1, c.element), int(n)
    while left:
        result = c.w.op(ait.MulOp, result, x) if left & 1 else result
        left >>= 1
        x = c.w.op(ait.MulOp, x, x) if left else x
    return result


def _power_by_bits(c: Call, x: SSAValue, n: SSAValue) -> SSAValue:
    """x ** n by squares, one for each bit of the exponent; of exponents below 0, 1 / x ** -n rounded towards zero."""
    if c.element == i1:
        raise NotSupported("powers of booleans are not supported; use torch.where")
    zero, one = c.w.scalar(0, c.element), c.w.scalar(1, c.element)
    _, largest = integer_range(c.element) or (0, 0)
    result, square = one, x
    for bit in range(largest.bit_length()):
        is_set = c.w.op(ait.BitAndOp, n, c.w.scalar(1 << bit, c.element))
        result = _where(c, "ne", is_set, zero, c.w.op(ait.MulOp, result, square), result)
        square = c.w.op(ait.MulOp, square, square)
    odd = _where(c, "eq", c.w.op(ait.BitAndOp, n, one), zero, one, x)
    inverse = _where(c, "eq", x, one, one, _where(c, "eq", x, c.w.scalar(-1, c.element), odd, zero))
    return _where(c, "lt", n, zero, inverse, result)


def _whole_power(c: Call, x: SSAValue, n: int) -> SSAValue:
    result = x
    for _ in range(abs(n) - 1):
        result = c.w.op(ait.MulOp, result, x)
    return c.w.op(ait.DivOp, c.w.scalar(1.0, c.element), result) if n < 0 else result


def sign(c: Call, x: SSAValue) -> SSAValue:
    """1, 0 or -1; 0 for NaN."""
    zero, one, minus = (c.w.scalar(n, c.element) for n in (0, 1, -1))
    return _where(c, "gt", x, zero, one, _where(c, "lt", x, zero, minus, zero))


def copy_sign(c: Call) -> Value:
    """The magnitude of one with the sign of the other, which may be a zero."""
    a, b = operand(c, "self", c.element), operand(c, "other", c.element)
    zero, size = c.w.scalar(0, c.element), c.w.op(ait.AbsOp, a)
    negative = c.w.op(ait.NegOp, size)
    of_zeros = _where(c, "lt", c.w.op(ait.DivOp, c.w.scalar(1, c.element), b), zero, negative, size)
    return spread(_where(c, "lt", b, zero, negative, of_zeros), c.dims)


def has_sign(c: Call) -> Value:
    """Whether a number is below 0 or the zero with a sign; NaN never is."""
    x = c.natural("self")
    element = tensor_type(x).element_type
    zero = c.w.scalar(0, element)
    if is_float(element):  # 1 / x is infinite, with the sign of the zero
        x = _where(c, "eq", x, zero, c.w.op(ait.DivOp, c.w.scalar(1, element), x), x)
    return Mask(c.dims, (), (c.w.op(ait.CompareOp, x, zero, properties={"predicate": "lt"}),))


def angle(c: Call, x: SSAValue) -> SSAValue:
    """Of a real number: pi below 0, else 0; NaN stays NaN."""
    zero = c.w.scalar(0, c.element)
    return _where(c, "lt", x, zero, c.w.scalar(math.pi, c.element), _where(c, "eq", x, x, zero, x))


def least_common_multiple(c: Call) -> Value:
    """|a / gcd(a, b) * b|; 0 where one is 0."""
    a, b = operand(c, "self", c.element), operand(c, "other", c.element)
    part = c.w.op(ait.DivOp, a, c.w.op(ait.GcdOp, a, b))
    return spread(c.w.op(ait.AbsOp, c.w.op(ait.MulOp, part, b)), c.dims)


def elu(c: Call, x: SSAValue) -> SSAValue:
    """scale * x above 0, else scale * alpha * (exp(input_scale * x) - 1)."""
    alpha, scale, inner = (float(c[name]) for name in ("alpha", "scale", "input_scale"))

    def times(value: SSAValue, factor: float) -> SSAValue:
        return value if factor == 1 else c.w.op(ait.MulOp, value, c.w.scalar(factor, c.element))

    negative = times(c.w.op(ait.Expm1Op, times(x, inner)), alpha * scale)
    return _where(c, "gt", x, c.w.scalar(0, c.element), times(x, scale), negative)


def differ(c: Call) -> Value:
    """Exclusive or, of booleans or of bits."""
    a, b = operand(c, "self", c.element), operand(c, "other", c.element)
    if c.element != i1:
        return spread(c.w.op(ait.BitXorOp, a, b), c.dims)
    return Mask(c.dims, (), (c.w.op(ait.CompareOp, a, b, properties={"predicate": "ne"}),))


# ** over dims **


def log_softmax(c: Call) -> Value:
    """x - max - log(sum(exp(x - max))) along one dim; a scalar is one of one element."""
    x, axis = c.w.reshape(c.w.cast(c.tensor("self"), c.element), c.dims or [1]), c.axis("dim")
    t = tensor_type(x)
    kept = [1 if a == axis else d for a, d in enumerate(t.dims)]
    low = c.w.op(ait.SubOp, x, c.w.reshape(c.w.put(ReduceOp("max", x, [axis])), kept))
    total = c.w.reshape(c.w.put(ReduceOp("sum", c.w.op(ait.ExpOp, low), [axis])), kept)
    return c.w.reshape(c.w.op(ait.SubOp, low, c.w.op(ait.LogOp, total)), c.dims)


def vector_norm(c: Call) -> Value:
    """(sum of |x| ** order) ** (1 / order); for order infinity the largest |x|, for order 0 the number of elements not
    0.
    """
    x = c.w.cast(c.tensor("self"), c.element)
    return _norm(c, x, axes_of(c, tensor_type(x).rank), float(c["ord"]))


def distances(c: Call) -> Value:
    """The norm of each difference of a row of x1 [..., p, m] and a row of x2 [..., r, m], [..., p, r]."""
    rows, columns = c.natural("x1"), c.natural("x2")
    a, b = tensor_type(rows).dims, tensor_type(columns).dims
    one = const(1)
    apart = c.w.op(
        ait.SubOp, c.w.reshape(rows, (*a[:-1], one, a[-1])), c.w.reshape(columns, (*b[:-2], one, b[-2], b[-1]))
    )
    return _norm(c, apart, [tensor_type(apart).rank - 1], float(c["p"]))


def distance(c: Call) -> Value:
    """The norm of self - other, which broadcast."""
    apart = c.w.op(ait.SubOp, c.w.cast(c.tensor("self"), c.element), c.w.cast(c.tensor("other"), c.element))
    return _norm(c, apart, range(tensor_type(apart).rank), float(c["p"]))


def _norm(c: Call, x: SSAValue, axes: Sequence[int], order: float) -> Value:
    size = c.w.op(ait.AbsOp, x)
    if math.isinf(order):
        return reduced(c, "max" if order > 0 else "min", size, axes)
    if order == 0:
        zero, one = c.w.scalar(0, c.element), c.w.scalar(1, c.element)
        return reduced(c, "sum", _where(c, "eq", x, zero, zero, one), axes)
    if order == 1:
        return reduced(c, "sum", size, axes)
    if order == 2:
        return c.w.op(ait.SqrtOp, reduced(c, "sum", c.w.op(ait.MulOp, x, x), axes))
    powers = _whole_power(c, size, int(order)) if order in (3, 4) else _power(c, size, order)
    return _power(c, reduced(c, "sum", powers, axes), 1 / order)


def _power(c: Call, x: SSAValue, exponent: float) -> SSAValue:
    return c.w.op(ait.PowOp, x, c.w.scalar(exponent, c.element))


_COMPUTED: dict[str, Callable[[Call, SSAValue], SSAValue]] = {
    "floor": floor, "ceil": ceil, "trunc": truncate, "round": round_to_even, "sign": sign, "sgn": sign, "elu": elu,
    "angle": angle,
}  # fmt: skip

ROWS: dict[str, Row] = {
    **{f"aten.{name}.default": compute(build) for name, build in _COMPUTED.items()},
    "aten.round.decimals": compute(round_decimals),
    "aten.fmax.default": extreme_number(ait.MaxOp),
    "aten.fmin.default": extreme_number(ait.MinOp),
    "aten.div.Tensor_mode": divide_rounding,
    "aten.div.Scalar_mode": divide_rounding,
    "aten.floor_divide.default": lambda c: spread(
        divided_down(c, operand(c, "self", c.element), operand(c, "other", c.element)), c.dims
    ),
    "aten.remainder.Scalar": remainder,
    "aten.remainder.Scalar_Tensor": remainder,
    "aten.remainder.Tensor": remainder,
    "aten.signbit.default": has_sign,
    "aten.lcm.default": least_common_multiple,
    "aten.copysign.Scalar": copy_sign,
    "aten.copysign.Tensor": copy_sign,
    "aten.fmod.Scalar": binary(ait.RemOp),
    "aten.fmod.Tensor": binary(ait.RemOp),
    "aten.floor_divide.Scalar": lambda c: spread(
        divided_down(c, operand(c, "self", c.element), operand(c, "other", c.element)), c.dims
    ),
    "aten.pow.Tensor_Scalar": power("self", "exponent"),
    "aten.pow.Tensor_Tensor": power("self", "exponent"),
    "aten.pow.Scalar": power("self", "exponent"),
    "aten.logical_xor.default": differ,
    "aten.__xor__.Tensor": differ,
    "aten.__xor__.Scalar": differ,
    "aten.bitwise_xor.Tensor": differ,
    "aten.bitwise_xor.Scalar": differ,
    "aten.bitwise_xor.Scalar_Tensor": differ,
    "aten.log_softmax.int": log_softmax,
    "aten._log_softmax.default": log_softmax,
    "aten.linalg_vector_norm.default": vector_norm,
    "aten.dist.default": distance,
    "aten._cdist_forward.default": distances,
    "aten.cdist.default": distances,
}
