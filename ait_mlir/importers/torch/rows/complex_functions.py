"""Functions of complex numbers: quotients, powers, exponentials, and the functions that are made of them.

z = a + bi throughout. Each is computed from real functions of a and b; an operand without an imaginary part gives a
result without one, where the function of a real number is real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import as_mask
from ait_mlir.compositions.fourier import sum_of
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.call import Call
from ait_mlir.importers.torch.rows.pairs import Pair, imaginary, pair_of, part_element, spread_pair

LARGEST_POWER = 8
"""The largest whole exponent that is computed by products."""


@dataclass(frozen=True)
class Numbers:
    """Arithmetic on complex values of one call."""

    c: Call

    def scalar(self, number: float) -> SSAValue:
        return self.c.w.scalar(number, part_element(self.c))

    def op(self, op: type, *operands: SSAValue) -> SSAValue:
        return self.c.w.op(op, *operands)

    def mul(self, x: Pair, y: Pair) -> Pair:
        def times(u: SSAValue | None, v: SSAValue | None) -> SSAValue | None:
            return None if u is None or v is None else self.op(ait.MulOp, u, v)

        real = sum_of(self.c.w, times(x.real, y.real), times(x.imag, y.imag), subtract=True)
        assert real is not None
        return Pair(real, sum_of(self.c.w, times(x.real, y.imag), times(x.imag, y.real)))

    def div(self, x: Pair, y: Pair) -> Pair:
        """x / y = x * conj(y) / |y|^2; y is divided by its larger part first, so that no square overflows."""
        if y.imag is None:
            imag = None if x.imag is None else self.op(ait.DivOp, x.imag, y.real)
            return Pair(self.op(ait.DivOp, x.real, y.real), imag)
        largest = self.op(ait.MaxOp, self.op(ait.AbsOp, y.real), self.op(ait.AbsOp, y.imag))
        a, b = (self.op(ait.DivOp, part, largest) for part in (y.real, y.imag))
        squares = self.op(ait.AddOp, self.op(ait.MulOp, a, a), self.op(ait.MulOp, b, b))
        product = self.mul(x, Pair(a, self.op(ait.NegOp, b)))
        size = self.op(ait.MulOp, squares, largest)
        return Pair(*(self.op(ait.DivOp, part, size) for part in (product.real, imaginary(self.c, product))))

    def exp(self, x: Pair) -> Pair:
        """e^a * (cos(b) + i sin(b))"""
        size = self.op(ait.ExpOp, x.real)
        if x.imag is None:
            return Pair(size)
        return Pair(*(self.op(ait.MulOp, size, self.op(f, x.imag)) for f in (ait.CosOp, ait.SinOp)))

    def log(self, x: Pair) -> Pair:
        """log |z| + i * angle(z)"""
        b = imaginary(self.c, x)
        return Pair(self.op(ait.LogOp, self.op(ait.HypotOp, x.real, b)), self.op(ait.Atan2Op, b, x.real))

    def sqrt(self, x: Pair) -> Pair:
        """The root with a nonnegative real part: t = sqrt((|z| + |a|) / 2) is one part, b / (2t) the other."""
        a, b = x.real, imaginary(self.c, x)
        zero, half = self.scalar(0.0), self.scalar(0.5)
        size = self.op(ait.AddOp, self.op(ait.HypotOp, a, b), self.op(ait.AbsOp, a))
        t = self.op(ait.SqrtOp, self.op(ait.MulOp, size, half))
        other = self.where("eq", t, zero, zero, self.op(ait.DivOp, self.op(ait.MulOp, b, half), t))
        signed = self.where("lt", b, zero, self.op(ait.NegOp, t), t)
        real = self.where("lt", a, zero, self.op(ait.AbsOp, other), t)
        return Pair(real, self.where("lt", a, zero, signed, other))

    def where(self, predicate: str, x: SSAValue, y: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        condition = self.c.w.op(ait.CompareOp, x, y, properties={"predicate": predicate})
        return self.op(ait.WhereOp, condition, then, otherwise)

    def negative(self, x: Pair) -> Pair:
        return Pair(self.op(ait.NegOp, x.real), None if x.imag is None else self.op(ait.NegOp, x.imag))

    def turned(self, x: Pair) -> Pair:
        """iz"""
        return Pair(self.op(ait.NegOp, imaginary(self.c, x)), x.real)

    def cosh(self, x: Pair) -> Pair:
        """cosh(a) cos(b) + i sinh(a) sin(b)"""
        return self._mixed(x, ait.CoshOp, ait.SinhOp)

    def sinh(self, x: Pair) -> Pair:
        """sinh(a) cos(b) + i cosh(a) sin(b)"""
        return self._mixed(x, ait.SinhOp, ait.CoshOp)

    def _mixed(self, x: Pair, real: type, imag: type) -> Pair:
        b = imaginary(self.c, x)
        parts = ((real, ait.CosOp), (imag, ait.SinOp))
        return Pair(*(self.op(ait.MulOp, self.op(f, x.real), self.op(g, b)) for f, g in parts))

    def tanh(self, x: Pair) -> Pair:
        """(t (1 + s^2) + i s (1 - t^2)) / (1 + t^2 s^2), t = tanh(a), s = tan(b): nothing overflows for large a."""
        t, s = self.op(ait.TanhOp, x.real), self.op(ait.TanOp, imaginary(self.c, x))
        one = self.scalar(1.0)
        square_t, square_s = self.op(ait.MulOp, t, t), self.op(ait.MulOp, s, s)
        below = self.op(ait.AddOp, one, self.op(ait.MulOp, square_t, square_s))
        real = self.op(ait.MulOp, t, self.op(ait.AddOp, one, square_s))
        imag = self.op(ait.MulOp, s, self.op(ait.SubOp, one, square_t))
        return Pair(self.op(ait.DivOp, real, below), self.op(ait.DivOp, imag, below))

    def sigmoid(self, x: Pair) -> Pair:
        """1 / (1 + e^-z)"""
        below = self.exp(self.negative(x))
        return self.div(Pair(self.scalar(1.0)), replace(below, real=self.op(ait.AddOp, self.scalar(1.0), below.real)))

    def power(self, x: Pair, n: int) -> Pair:
        """z^n for a whole n, by squares."""
        if n < 0:
            return self.div(Pair(self.scalar(1.0)), self.power(x, -n))
        if n == 0:
            return Pair(self.c.w.expand(self.scalar(1.0), tensor_type(x.real).dims))
        half = self.power(x, n // 2)
        square = x if n == 1 else self.mul(half, half)
        return self.mul(square, x) if n % 2 and n > 1 else square


def function(compute: Callable[[Numbers, Pair], Pair]) -> Callable[[Call], Pair]:
    """A row that applies a function to `self`."""
    return lambda c: spread_pair(c, compute(Numbers(c), pair_of(c, "self")))


def multiply(c: Call) -> Pair:
    return spread_pair(c, Numbers(c).mul(pair_of(c, "self"), pair_of(c, "other")))


def divide(c: Call) -> Pair:
    return spread_pair(c, Numbers(c).div(pair_of(c, "self"), pair_of(c, "other")))


def power(c: Call) -> Pair:
    """z^w = exp(w log z), which is 0 for z = 0; small whole exponents by products."""
    numbers, exponent = Numbers(c), c.arguments["exponent"]
    x = pair_of(c, "self")
    if isinstance(exponent, int | float) and exponent == int(exponent) and abs(exponent) <= LARGEST_POWER:
        return spread_pair(c, numbers.power(x, int(exponent)))
    if exponent == 0.5:
        return spread_pair(c, numbers.sqrt(x))
    found = numbers.exp(numbers.mul(pair_of(c, "exponent"), numbers.log(x)))
    zero = numbers.scalar(0.0)
    size = numbers.op(ait.HypotOp, x.real, imaginary(c, x))
    return spread_pair(
        c, Pair(*(numbers.where("eq", size, zero, zero, part) for part in (found.real, imaginary(c, found))))
    )


def sign(c: Call) -> Pair:
    """z / |z|, and 0 of 0"""
    numbers, x = Numbers(c), pair_of(c, "self")
    b, zero = imaginary(c, x), numbers.scalar(0.0)
    size = numbers.op(ait.HypotOp, x.real, b)
    parts = (numbers.where("eq", size, zero, zero, numbers.op(ait.DivOp, part, size)) for part in (x.real, b))
    return spread_pair(c, Pair(*parts))


def chosen(condition: str, then: str, otherwise: str) -> Callable[[Call], Pair]:
    """`then` where the condition holds, else `otherwise`, part by part."""

    def row(c: Call) -> Pair:
        mask = c.w.natural(as_mask(c.value(condition)))
        x, y = pair_of(c, then), pair_of(c, otherwise)
        real = c.w.where(mask, x.real, y.real)
        if x.imag is None and y.imag is None:
            return spread_pair(c, Pair(real))
        return spread_pair(c, Pair(real, c.w.where(mask, imaginary(c, x), imaginary(c, y))))

    return row


FUNCTIONS: dict[str, Callable[[Call], Pair]] = {
    "aten.cos.default": function(lambda n, x: n.cosh(n.turned(x))),
    "aten.cosh.default": function(Numbers.cosh),
    "aten.div.Tensor": divide,
    "aten.exp.default": function(Numbers.exp),
    "aten.log.default": function(Numbers.log),
    "aten.masked_fill.Scalar": chosen("mask", "value", "self"),
    "aten.masked_fill.Tensor": chosen("mask", "value", "self"),
    "aten.mul.Tensor": multiply,
    "aten.pow.Tensor_Scalar": power,
    "aten.pow.Tensor_Tensor": power,
    "aten.reciprocal.default": function(lambda n, x: n.power(x, -1)),
    "aten.sgn.default": sign,
    "aten.sigmoid.default": function(lambda n, x: n.sigmoid(x)),
    "aten.sin.default": function(lambda n, x: n.turned(n.negative(n.sinh(n.turned(x))))),
    "aten.sinh.default": function(Numbers.sinh),
    "aten.sqrt.default": function(Numbers.sqrt),
    "aten.square.default": function(lambda n, x: n.mul(x, x)),
    "aten.tanh.default": function(Numbers.tanh),
    "aten.where.self": chosen("condition", "self", "other"),
}
"""Rows of calls with a complex argument or result."""
