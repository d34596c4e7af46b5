"""Determinants."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.dialects.ait.reduce import ArgmaxOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const, product
from ait_mlir.importers.onnx.call import Call, NotSupported, Row

LARGEST = 32
"""The most rows of a matrix, whose elimination is written step by step."""


def determinant(c: Call) -> SSAValue:
    """The product of the pivots of an elimination with partial pivoting (Golub and Van Loan, Matrix Computations, 3.4);
    0 where a column has no pivot.
    """
    x = c.tensor(0)
    *outer, rows, columns = tensor_type(x).dims
    n = rows.as_int()
    if n is None or columns.as_int() != n or not 1 <= n <= LARGEST:
        raise NotSupported(f"matrices of {rows} x {columns}, expected square ones of a known size from 1 to {LARGEST}")
    batch = product(outer)
    rest = c.w.reshape(x, (batch, n, n))
    found: SSAValue | None = None
    for left in range(n, 0, -1):
        column = c.w.slice(rest, 2, 0, 1)
        place = c.w.put(ArgmaxOp(c.w.pointwise("abs", column), 1))
        numbers = c.w.full(Affine((const(1), const(left), const(1)), (const(0), const(1), const(0)), const(0), i64))
        chosen = c.w.compare("eq", c.w.reshape(place, (batch, 1, 1)), numbers)
        pivots = c.w.reduce("sum", c.w.where(chosen, rest, 0), [1], True)
        pivot = c.w.slice(pivots, 2, 0, 1)
        moved = c.w.compare("ne", c.w.reshape(place, (batch, 1, 1)), 0)
        signed = c.w.where(moved, c.w.neg(pivot), pivot)
        found = signed if found is None else c.w.mul(found, signed)
        if left > 1:
            swapped = c.w.where(chosen, c.w.slice(rest, 1, 0, 1), rest)  # the first row is where the pivot was
            others = c.w.slice(swapped, 1, 1, left - 1)
            lacks = c.w.compare("eq", pivot, 0)
            factors = c.w.div(c.w.slice(others, 2, 0, 1), c.w.where(lacks, 1, pivot))
            rest = c.w.slice(c.w.sub(others, c.w.mul(factors, pivots)), 2, 1, left - 1)
    assert found is not None
    return c.w.reshape(found, outer)


ROWS: dict[str, Row] = {"Det": determinant}
