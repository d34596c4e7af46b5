"""Special functions as sums of their series: modified Bessel functions, polygamma functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ait_mlir.building.known import Value, spread
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.importers.torch.call import Call, NotSupported, Row

LARGEST_ORDER, MIRRORED = 8, -4.0
"""The largest order of a polygamma function, and where it is computed by reflection, which loses digits near its
zeros."""


class _Sum:
    """Arithmetic in the type that a function is computed in, at least f32."""

    def __init__(self, c: Call) -> None:
        self.w, self.element = c.w, compute_type(c.element)

    def of(self, number: float | SSAValue) -> SSAValue:
        return number if isinstance(number, SSAValue) else self.w.scalar(float(number), self.element)

    def add(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        return self.w.op(ait.AddOp, a, self.of(b))

    def mul(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        return self.w.op(ait.MulOp, a, self.of(b))

    def sub(self, a: SSAValue | float, b: SSAValue) -> SSAValue:
        return self.w.op(ait.SubOp, self.of(a), b)

    def div(self, a: SSAValue | float, b: SSAValue | float) -> SSAValue:
        return self.w.op(ait.DivOp, self.of(a), self.of(b))

    def where(self, predicate: str, x: SSAValue, y: float, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        return self.w.op(ait.WhereOp, self.w.put(ait.CompareOp(predicate, x, self.of(y))), then, otherwise)

    def polynomial(self, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
        """The first coefficient is the constant one (Horner's rule)."""
        result = self.of(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.add(self.mul(result, x), coefficient)
        return result

    def power(self, x: SSAValue, n: int) -> SSAValue:
        """x ** n for n from 1, by squares."""
        if n == 1:
            return x
        half = self.power(x, n // 2)
        square = self.mul(half, half)
        return self.mul(square, x) if n % 2 else square


def bessel(order: int, scaled: bool) -> Row:
    """The modified Bessel function of the first kind of order 0 or 1; `scaled`: times exp(-|x|).

    Near 0 it is the power series, all terms of which are positive. From `far` on it is exp(x) / sqrt(2 pi x) times
    Hankel's series in 1 / x, whose terms fall to about exp(-2 far) (Abramowitz and Stegun, 9.6.10 and 9.7.1).
    """

    def row(c: Call) -> Value:
        s = _Sum(c)
        far, terms = (20.0, 38) if s.element == f64 else (12.0, 25)
        given = c.w.cast(c.natural("self"), s.element)
        x = c.w.op(ait.AbsOp, given)
        low, high = c.w.op(ait.MinOp, x, s.of(far)), c.w.op(ait.MaxOp, x, s.of(far))
        series = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(terms)]
        near = s.polynomial(series, s.mul(s.mul(low, low), 0.25))
        hankel = [1.0]
        for k in range(1, int(1.5 * far)):
            hankel.append(hankel[-1] * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k))
        tail = s.mul(s.polynomial(hankel, s.div(1.0, high)), c.w.op(ait.RsqrtOp, s.mul(high, 2 * math.pi)))
        if order == 1:
            near = s.mul(near, s.mul(low, 0.5))
        grown = c.w.op(ait.ExpOp, c.w.op(ait.NegOp, x) if scaled else x)
        near, tail = (s.mul(near, grown), tail) if scaled else (near, s.mul(tail, grown))
        y = s.where("lt", x, far, near, tail)
        y = c.w.op(ait.WhereOp, c.w.put(ait.CompareOp("eq", x, x)), y, x)
        if order == 1:
            y = s.where("lt", given, 0.0, c.w.op(ait.NegOp, y), y)
        return spread(c.w.cast(y, c.element), c.dims)

    return row


def polygamma(c: Call) -> Value:
    """Derivative `n` of digamma: (-1)^(n+1) n! zeta(n + 1, x), below -4 by reflection: psi_n(x) = (-1)^n psi_n(1 - x)
    - d^n/dx^n (pi cot(pi x)).
    """
    n, s = int(c["n"]), _Sum(c)
    x = c.w.cast(c.natural("self"), s.element)
    if n == 0:
        return spread(c.w.cast(c.w.op(ait.DigammaOp, x), c.element), c.dims)
    if n > LARGEST_ORDER:
        raise NotSupported(f"polygamma is supported up to order {LARGEST_ORDER}, found {n}")
    right = s.where("lt", x, MIRRORED, s.sub(1.0, x), x)
    plain = s.mul(_zeta(s, n + 1, right), (-1) ** (n + 1) * math.factorial(n))
    angle = s.mul(s.sub(x, c.w.op(ait.FloorOp, s.add(x, 0.5))), math.pi)
    cotangent = s.div(c.w.op(ait.CosOp, angle), c.w.op(ait.SinOp, angle))
    derivative = s.polynomial(_cotangent(n)[(n + 1) % 2 :: 2], s.mul(cotangent, cotangent))
    if n % 2 == 0:
        derivative = s.mul(derivative, cotangent)
    left = s.sub(s.mul(plain, (-1) ** n), s.mul(derivative, math.pi ** (n + 1)))
    return spread(c.w.cast(s.where("lt", x, MIRRORED, left, plain), c.element), c.dims)


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers of orders 2, 4, ..., 16."""
DIRECT = 10
"""How many terms of zeta are added before the Euler-Maclaurin formula gives the rest."""


def _zeta(s: _Sum, order: int, x: SSAValue) -> SSAValue:
    """The sum of (x + k) ** -order for all k from 0, x from -4 on."""
    far = s.add(x, float(DIRECT))
    inverse = s.div(1.0, far)
    corrections = [
        number * math.prod(range(order, order + 2 * j - 1)) / math.factorial(2 * j)
        for j, number in enumerate(BERNOULLI, 1)
    ]
    # far ** (1 - order) * (1 / (order - 1) + 1 / far * (1 / 2 + 1 / far * (corrections in 1 / far ** 2)))
    rest = s.mul(s.polynomial(corrections, s.mul(inverse, inverse)), inverse)
    total = s.mul(s.add(s.mul(s.add(rest, 0.5), inverse), 1 / (order - 1)), s.power(inverse, order - 1))
    for k in reversed(range(DIRECT)):
        total = s.add(total, s.power(s.div(1.0, s.add(x, float(k)) if k else x), order))
    return total


def _cotangent(n: int) -> list[float]:
    """Derivative n of the cotangent, as a polynomial in it: that of c is -(1 + c^2)."""
    found = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        found = found.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    return [float(a) for a in found.coef]


ROWS: dict[str, Row] = {
    "aten.i0.default": bessel(0, scaled=False),
    "aten.special_i0e.default": bessel(0, scaled=True),
    "aten.special_i1.default": bessel(1, scaled=False),
    "aten.special_i1e.default": bessel(1, scaled=True),
    "aten.polygamma.default": polygamma,
}
