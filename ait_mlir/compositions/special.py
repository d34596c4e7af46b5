"""Special functions of floats as sums of their series: modified Bessel functions, polygamma functions.

Operands have a type in which sums are exact enough, at least f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.types import tensor_type

LARGEST_ORDER, MIRRORED = 8, -4.0
"""The largest order of a polygamma function, and where it is computed by reflection, which loses digits near its
zeros."""


def bessel(w: Writer, given: SSAValue, order: int, scaled: bool) -> SSAValue:
    """The modified Bessel function of the first kind of order 0 or 1; `scaled`: times exp(-|x|).

    Near 0 it is the power series, all terms of which are positive. From `far` on it is exp(x) / sqrt(2 pi x) times
    Hankel's series in 1 / x, whose terms fall to about exp(-2 far) (Abramowitz and Stegun, 9.6.10 and 9.7.1).
    """
    far, terms = (20.0, 38) if tensor_type(given).element_type == f64 else (12.0, 25)
    x = w.pointwise("abs", given)
    low, high = w.minimum(x, far), w.maximum(x, far)
    series = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(terms)]
    near = _polynomial(w, series, w.mul(w.mul(low, low), 0.25))
    hankel = [1.0]
    for k in range(1, int(1.5 * far)):
        hankel.append(hankel[-1] * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k))
    tail = w.mul(_polynomial(w, hankel, w.div(1.0, high)), w.pointwise("rsqrt", w.mul(high, 2 * math.pi)))
    if order == 1:
        near = w.mul(near, w.mul(low, 0.5))
    grown = w.pointwise("exp", w.neg(x) if scaled else x)
    near, tail = (w.mul(near, grown), tail) if scaled else (near, w.mul(tail, grown))
    y = w.where(w.compare("lt", x, far), near, tail)
    y = w.where(w.compare("eq", x, x), y, x)
    return w.where(w.compare("lt", given, 0.0), w.neg(y), y) if order == 1 else y


def polygamma(w: Writer, x: SSAValue, n: int) -> SSAValue:
    """Derivative `n` of digamma: (-1)^(n+1) n! zeta(n + 1, x), below -4 by reflection: psi_n(x) = (-1)^n psi_n(1 - x)
    - d^n/dx^n (pi cot(pi x)).
    """
    if n == 0:
        return w.pointwise("digamma", x)
    if n > LARGEST_ORDER:
        raise w.unsupported(f"polygamma is supported up to order {LARGEST_ORDER}, found {n}")
    mirrored = w.compare("lt", x, MIRRORED)
    right = w.where(mirrored, w.sub(1.0, x), x)
    plain = w.mul(_zeta(w, n + 1, right), (-1) ** (n + 1) * math.factorial(n))
    angle = w.mul(w.sub(x, w.pointwise("floor", w.add(x, 0.5))), math.pi)
    cotangent = w.div(w.pointwise("cos", angle), w.pointwise("sin", angle))
    derivative = _polynomial(w, _cotangent(n)[(n + 1) % 2 :: 2], w.mul(cotangent, cotangent))
    if n % 2 == 0:
        derivative = w.mul(derivative, cotangent)
    left = w.sub(w.mul(plain, (-1) ** n), w.mul(derivative, math.pi ** (n + 1)))
    return w.where(mirrored, left, plain)


def _polynomial(w: Writer, coefficients: Sequence[float], x: SSAValue) -> SSAValue:
    """A polynomial in x by Horner's rule; the first coefficient is the constant term."""
    result = w.scalar_like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        result = w.add(w.mul(result, x), coefficient)
    return result


def _power(w: Writer, x: SSAValue, n: int) -> SSAValue:
    """x ** n for n >= 1, by squares."""
    if n == 1:
        return x
    half = _power(w, x, n // 2)
    square = w.mul(half, half)
    return w.mul(square, x) if n % 2 else square


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers of orders 2, 4, ..., 16."""
DIRECT = 10
"""How many terms of zeta are added before the Euler-Maclaurin formula gives the rest."""


def _zeta(w: Writer, order: int, x: SSAValue) -> SSAValue:
    """The sum of (x + k) ** -order over all k >= 0, for x >= -4 (the Hurwitz zeta function)."""
    far = w.add(x, float(DIRECT))
    inverse = w.div(1.0, far)
    corrections = [
        number * math.prod(range(order, order + 2 * j - 1)) / math.factorial(2 * j)
        for j, number in enumerate(BERNOULLI, 1)
    ]
    # far ** (1 - order) * (1 / (order - 1) + 1 / far * (1 / 2 + 1 / far * (corrections in 1 / far ** 2)))
    rest = w.mul(_polynomial(w, corrections, w.mul(inverse, inverse)), inverse)
    total = w.mul(w.add(w.mul(w.add(rest, 0.5), inverse), 1 / (order - 1)), _power(w, inverse, order - 1))
    for k in reversed(range(DIRECT)):
        total = w.add(total, _power(w, w.div(1.0, w.add(x, float(k)) if k else x), order))
    return total


def _cotangent(n: int) -> list[float]:
    """The coefficients of the n-th derivative of the cotangent, as a polynomial in the cotangent c. (The derivative of
    c is -(1 + c^2).)
    """
    found = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        found = found.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    return [float(a) for a in found.coef]
