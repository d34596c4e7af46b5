"""Elements of resampled tensors: positions are exact fractions, so an index is an integer division."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import AddOp, DivOp, MulOp, SubOp
from ait_mlir.dialects.ait.resize import TAPS, ResizeOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, maximum, minimum
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements

A = -0.75
"""The parameter of the cubic weights (Keys 1981)."""
MAX_TERM = 1 << 12
"""The largest numerator or denominator of a scale that counts as exact."""

Tap = tuple[Expr, SSAValue | None]
"""An index of x along a dim, and its weight; None is 1."""


@elements_of(ResizeOp)
def _(op: ResizeOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    x, y = tensor_type(op.x), tensor_type(op.output)
    compute = compute_type(x.element_type)
    along: list[list[Tap]] = []
    for axis, scale in enumerate(op.factors(), 1):
        i, size, count = index[axis], x.dims[axis], y.dims[axis]
        if not isinstance(i, Expr):
            raise NoElements("a resampled dim is read at a value")
        along.append(taps(op, w, i, size, count, scale, compute))

    def summed(axis: int, place: Sequence[Expr]) -> SSAValue:
        """The weighted sum over the taps of the spatial dims from `axis` on."""
        if axis == len(along):
            return w.element(op.x, [index[0], *place, index[-1]])
        found: SSAValue | None = None
        for at, weight in along[axis]:
            term = summed(axis + 1, [*place, at])
            term = term if weight is None else w.op(MulOp, term, weight)
            found = term if found is None else w.op(AddOp, found, term)
        assert found is not None
        return found

    return summed(0, [])


def taps(
    op: ResizeOp, w: ElementWriter, i: Expr, size: Expr, count: Expr, scale: float, compute: Attribute
) -> list[Tap]:
    """The input elements along a dim that element i of the result depends on."""
    mode, last = op.mode.data, size - 1
    up, down = step(op, w, size, count, scale)
    if TAPS[mode] == 1:
        at = i * up // down if mode == "nearest" else (2 * i + 1) * up // (2 * down)
        return [(w.simplified(minimum(at, last)), None)]
    if op.align_corners is None:
        place, unit = (2 * i + 1) * up - down, 2 * down
    else:
        place, unit = i * last, maximum(count - 1, const(1))
    if mode == "linear":
        place = w.simplified(maximum(minimum(place, last * unit), const(0)))
    first = w.simplified(place // unit)
    rest = w.simplified(place % unit)
    t = w.op(DivOp, w.number(rest, compute), w.number(unit, compute))
    one = w.constant(1.0, compute)
    if mode == "linear":
        return [(first, w.op(SubOp, one, t)), (w.simplified(minimum(first + 1, last)), t)]
    places = [w.simplified(maximum(minimum(first + n, last), const(0))) for n in (-1, 0, 1, 2)]
    before = w.op(SubOp, one, t)
    weights = [far(w, w.op(AddOp, t, one)), near(w, t), near(w, before), far(w, w.op(AddOp, before, one))]
    return list(zip(places, weights, strict=True))


def step(op: ResizeOp, w: ElementWriter, size: Expr, count: Expr, scale: float) -> tuple[Expr, Expr]:
    """The distance between neighbouring positions along a dim, as a fraction."""
    by_sizes = scale == 0
    for n in op.kept_by_sizes() if scale else ():
        if w.scope.equal(count, n * size):
            by_sizes = True
        elif not (w.scope.lt(count, n * size) or w.scope.lt(n * size, count)):
            raise NoElements("whether the scale counts depends on the sizes of a run")
    if by_sizes:
        n = next((n for n in range(1, 9) if w.scope.equal(count, n * size)), None)
        return (size, count) if n is None else (const(1), const(n))
    exact = Fraction(scale)
    if exact.numerator > MAX_TERM or exact.denominator > MAX_TERM:
        raise NoElements(f"the scale {scale} is no short fraction")
    return const(exact.denominator), const(exact.numerator)


def near(w: ElementWriter, x: SSAValue) -> SSAValue:
    """The cubic weight of a neighbour at a distance of at most 1: ((a + 2) x - (a + 3)) x^2 + 1."""
    compute = x.type
    inner = w.op(SubOp, w.op(MulOp, w.constant(A + 2, compute), x), w.constant(A + 3, compute))
    return w.op(AddOp, w.op(MulOp, w.op(MulOp, inner, x), x), w.constant(1.0, compute))


def far(w: ElementWriter, x: SSAValue) -> SSAValue:
    """The cubic weight of a neighbour at a distance of 1 to 2: ((a x - 5 a) x + 8 a) x - 4 a."""
    compute = x.type
    found = w.op(MulOp, w.constant(A, compute), x)
    for number in (5 * A, -8 * A):
        found = w.op(MulOp, w.op(SubOp, found, w.constant(number, compute)), x)
    return w.op(SubOp, found, w.constant(4 * A, compute))
