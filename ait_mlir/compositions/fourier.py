"""Fourier transforms as products with matrices of cosines and sines, n x n for a length of n: for short lengths.

A complex tensor is a pair of real ones; a part that is None is 0.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.building.writer import Writer
from ait_mlir.compositions.contraction import product_along
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, floordiv, minimum

ONE, ZERO = const(1), const(0)
LONGEST = 4096
"""The longest transform: its matrices have as many rows and columns."""
Part = SSAValue | None

POWERS: dict[str | int | None, tuple[float, float]] = {
    None: (0, -1), "backward": (0, -1), "ortho": (-0.5, -0.5), "forward": (-1, 0),
    0: (0, 0), 1: (-0.5, -0.5), 2: (-1, -1),
}  # fmt: skip
"""The power of n by which a transform and its inverse are scaled, by PyTorch's `norm` or number of a normalization."""


def half(n: Expr) -> Expr:
    """The number of coefficients of a transform of n real numbers that do not follow from others."""
    return floordiv(n, 2) + 1


def transform(
    w: Writer,
    real: SSAValue,
    imag: Part,
    axis: int,
    n: Expr,
    columns: Expr | None = None,
    *,
    power: float = 0,
    inverse: bool = False,
) -> tuple[SSAValue, SSAValue]:
    """The parts of the transform along an axis, of length n, times n ** power; or its first columns.

    A longer dim is cut to n, a shorter one counts as followed by zeros.
    """
    real, imag, rows = _fitting(w, real, imag, axis, n)
    most = n if columns is None else columns
    cos, sin = _waves(w, n, rows, most, tensor_type(real).element_type, 1 if inverse else -1)
    found = (
        sum_of(w, _product(w, real, axis, cos), _product(w, imag, axis, sin), subtract=True),
        sum_of(w, _product(w, imag, axis, cos), _product(w, real, axis, sin)),
    )
    first, second = (_scaled(w, f, n, power) for f in found if f is not None)
    return first, second


def real_inverse(w: Writer, real: SSAValue, imag: Part, axis: int, n: Expr, *, power: float = -1) -> SSAValue:
    """The real inverse transform of length n along an axis, from the first half of the coefficients."""
    real, imag, rows = _fitting(w, real, imag, axis, half(n))
    element = tensor_type(real).element_type
    weights = _weights(w, n, rows, element)
    cos, sin = (w.mul(wave, weights) for wave in _waves(w, n, rows, n, element))
    found = sum_of(w, _product(w, real, axis, cos), _product(w, imag, axis, sin), subtract=True)
    assert found is not None
    return _scaled(w, found, n, power)


def sum_of(w: Writer, a: Part, b: Part, subtract: bool = False) -> Part:
    """a + b or a - b; None counts as 0."""
    if b is None:
        return a
    if a is None:
        return w.neg(b) if subtract else b
    return w.sub(a, b) if subtract else w.add(a, b)


def _waves(w: Writer, n: Expr, rows: Expr, columns: Expr, element: Attribute, sign: int = 1) -> list[SSAValue]:
    """cos and sin of sign * 2 pi j k / n, [rows, columns]; with known sizes they are computed once, in 64 bits."""
    most = w.scope.bounds(n)[1]
    if most > LONGEST:
        raise w.unsupported(f"a transform has up to {LONGEST} elements; this one may have {most}")
    j, k = w.full(Affine((rows, ONE), (ONE, ONE), ZERO)), w.places(columns)
    turns = w.rem(w.mul(j, k), n)
    if (length := n.as_int()) is not None and all(e.as_int() is not None for e in (rows, columns)):
        angles = w.mul(w.cast(turns, f64), sign * 2 * math.pi / max(length, 1))
    else:
        angles = w.mul(w.cast(turns, element), w.div(w.scalar(sign * 2 * math.pi, element), n))
    return [w.cast(w.pointwise(wave, angles), element) for wave in ("cos", "sin")]


def _product(w: Writer, x: Part, axis: int, matrix: SSAValue) -> Part:
    return None if x is None else product_along(w, x, axis, matrix)


def _scaled(w: Writer, x: SSAValue, n: Expr, power: float) -> SSAValue:
    """x * n ** power"""
    if power == 0:
        return x
    if (length := n.as_int()) is not None:
        return w.mul(x, float(max(length, 1)) ** power)
    size = w.number(n, tensor_type(x).element_type)
    return w.div(x, size) if power == -1 else w.mul(x, w.pointwise("rsqrt", size))


def _fitting(w: Writer, real: SSAValue, imag: Part, axis: int, most: Expr) -> tuple[SSAValue, Part, Expr]:
    """Both parts cut to at most `most` elements along an axis, and their size; missing elements count as 0 in a
    transform.
    """
    size = tensor_type(real).dims[axis]
    if w.scope.le(size, most):
        return real, imag, size
    kept = most if w.scope.le(most, size) else minimum(size, most)
    first, second = (None if p is None else w.slice(p, axis, ZERO, kept) for p in (real, imag))
    assert first is not None
    return first, second, kept


def _weights(w: Writer, n: Expr, rows: Expr, element: Attribute) -> SSAValue:
    """The factors of the coefficients of a real transform of length n: 1 for the first and the middle coefficient, else
    2.
    """
    length, height = n.as_int(), rows.as_int()
    if length is not None and height is not None:
        return w.constant([1.0 if k in (0, length / 2) else 2.0 for k in range(height)], (rows, ONE), element)
    k = w.full(Affine((rows, ONE), (ONE, ONE), ZERO))
    lone = w.either(w.compare("eq", k, 0), w.compare("eq", w.add(k, k), n))
    return w.where(lone, w.scalar(1.0, element), 2.0)
