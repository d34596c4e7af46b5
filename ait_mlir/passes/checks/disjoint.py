"""Proofs that two views of one buffer have no element in common."""

from __future__ import annotations

from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dims import DimError, Expr, Scope


def are_disjoint(a: Strided, b: Strided, scope: Scope) -> bool:
    """Whether it is proved that the views share no element, for all values of the dims.

    Either one view ends before the other begins, or they are different columns of rows of one length: `[0, 64)` and
    `[64, 96)` of each row of 96, as the parts of a concatenation.
    """
    if any(d.as_int() == 0 for d in (*a.dims, *b.dims)):
        return True
    try:
        if scope.lt(_last(a), b.offset) or scope.lt(_last(b), a.offset):
            return True
    except DimError:
        return False
    rows = {s.as_int() for v in (a, b) for d, s in zip(v.dims, v.strides, strict=True) if d.as_int() != 1}
    return any(_in_columns(a, b, row, scope) for row in rows if row is not None and row > 1)


def _last(view: Strided) -> Expr:
    last = view.offset
    for dim, stride in zip(view.dims, view.strides, strict=True):
        last = last + (dim - 1) * stride
    return last


def _in_columns(a: Strided, b: Strided, row: int, scope: Scope) -> bool:
    """Whether both views are in different columns of rows of this length."""
    widths: list[int] = []
    for view in (a, b):
        width = 1
        for dim, stride in zip(view.dims, view.strides, strict=True):
            if dim.as_int() == 1 or scope.divisible(stride, row):
                continue
            size, step = dim.as_int(), stride.as_int()
            if size is None or step is None or step < 0:
                return False
            width += (size - 1) * step
        widths.append(width)
    apart = b.offset - a.offset
    # the distance in whole rows does not matter
    constant = sum(coefficient for coefficient, atoms in apart.terms() if not atoms)
    rest = apart - constant
    if not (rest.as_int() == 0 or scope.divisible(rest, row)):
        return False
    column = constant % row
    return widths[0] <= column and column + widths[1] <= row
