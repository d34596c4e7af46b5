"""Small linear systems, composed from other operations by elimination with unrolled steps.

A matrix that has no inverse gives infinities and NaN where PyTorch raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ait_mlir.importers.torch.library import torch

TERMS, SQUARINGS = 18, 20
"""Of `matrix_exp`: the terms that double precision needs for matrices whose norm is at most 1, and the most squarings,
for norms up to 2^20."""
LARGEST = 16
"""The most rows of a matrix: the program grows with them."""
LARGEST_TRIANGLE = 1024
"""The most rows of a triangle: the program grows with their logarithm, and each of its products with their cube."""


def _rows(a: Any, largest: int = LARGEST) -> int:
    n = a.shape[-1]
    if not isinstance(n, int) or not 1 <= n <= largest:
        raise NotImplementedError(f"matrices of {n} rows; the number of rows must be known, and from 1 to {largest}")
    if a.is_complex():
        raise NotImplementedError("systems of complex numbers are not supported")
    return n


def eliminated(a: Any, b: Any) -> tuple[list[Any], Any]:
    """The rows of [a, b] as an upper triangle, by elimination with partial pivoting, and the sign of the row
    permutation: Golub and Van Loan, Matrix Computations, 3.4.
    """
    n = _rows(a)
    rest, rows, sign = torch.cat([a, b], -1), list[Any](), torch.ones_like(a[..., 0, 0])
    for k in range(n):
        place = rest[..., k].abs().argmax(-1, keepdim=True)
        chosen = place[..., None] == torch.arange(n - k, device=a.device)[:, None]
        pivot = torch.where(chosen, rest, 0).sum(-2, keepdim=True)
        sign = torch.where(place[..., 0] == 0, sign, -sign)
        others = torch.where(chosen, rest[..., :1, :], rest)[..., 1:, :]  # swaps the first row and the pivot row
        rest = others - others[..., k : k + 1] / pivot[..., k : k + 1] * pivot
        rows.append(pivot[..., 0, :])
    return rows, sign


def substituted(a: Any, b: Any, upper: bool, unitriangular: bool = False) -> Any:
    """x with a @ x = b, for an upper or a lower triangle a; the other triangle is not read."""
    n, found = _rows(a), dict[int, Any]()
    for k in reversed(range(n)) if upper else range(n):
        known = b[..., k, :]
        for j, x in found.items():
            known = known - a[..., k, j, None] * x
        found[k] = known if unitriangular else known / a[..., k, k, None]
    return torch.stack([found[k] for k in range(n)], -2)


def inverse_of_unit_triangle(a: Any) -> Any:
    """The inverse of a lower triangle with ones on its diagonal; only elements of `a` below the diagonal are read.

    The diagonal blocks of 1, 2, 4, ... rows are inverted in turn: the inverse of [[A, 0], [B, C]] is
    [[inv(A), 0], [-inv(C) @ B @ inv(A), inv(C)]] (Higham, Accuracy and Stability of Numerical Algorithms, 14.2). A step
    is two products of whole matrices, which hold all blocks.
    """
    n = _rows(a, LARGEST_TRIANGLE)
    places = torch.arange(n, device=a.device)
    found = torch.eye(n, dtype=a.dtype, device=a.device).expand(a.shape)
    size = 1
    while size < n:
        blocks = places // size
        is_read = (blocks[:, None] == blocks + 1) & (blocks[:, None] % 2 == 1)
        below = torch.where(is_read, a, 0)
        found = found - (below if size == 1 else found @ below @ found)
        size *= 2
    return found


def _inverted(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """x with a @ x = b for a triangle of many rows, by the inverse of the triangle."""
    if upper:
        return _inverted(a.flip(-1, -2), b.flip(-2), False, unitriangular).flip(-2)
    if not unitriangular:
        diagonal = a.diagonal(dim1=-2, dim2=-1)[..., None]
        a, b = a / diagonal, b / diagonal
    return inverse_of_unit_triangle(a) @ b


def solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """`torch.linalg.solve_triangular`"""
    a, b = _broadcast(a, b)
    solve = substituted if _rows(a, LARGEST_TRIANGLE) <= LARGEST else _inverted
    return solve(a, b, upper, unitriangular) if left else solve(a.mT, b.mT, not upper, unitriangular).mT


def _broadcast(a: Any, b: Any) -> tuple[Any, Any]:
    """Two tensors of matrices with the same leading dims."""
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


def solved(a: Any, b: Any) -> Any:
    """x with a @ x = b; a and b have the same rank."""
    whole = torch.stack(eliminated(a, b)[0], -2)
    n = a.shape[-1]
    return substituted(whole[..., :n], whole[..., n:], upper=True)


def solve(a: Any, b: Any, *, left: bool = True) -> Any:
    """`torch.linalg.solve`; if b has one dim less than a, it is a vector for each matrix."""
    is_vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and tuple(b.shape) == tuple(a.shape[:-1]))
    b = b[..., None] if is_vector else b
    a, b = _broadcast(a, b)
    x = solved(a, b) if left else solved(a.mT, b.mT).mT
    return x[..., 0] if is_vector else x


def inverse(a: Any) -> Any:
    """`torch.linalg.inv`"""
    return solved(a, torch.eye(_rows(a), dtype=a.dtype, device=a.device).expand(a.shape))


def _diagonal(a: Any) -> tuple[Any, Any]:
    """The diagonal of the eliminated matrix, and the sign of the row permutation."""
    rows, sign = eliminated(a, a[..., :0])
    return torch.stack([row[..., k] for k, row in enumerate(rows)], -1), sign


def determinant(a: Any) -> tuple[Any, Any, Any]:
    """`torch.linalg.det` and placeholders for the factors that the operation also returns, which nobody reads."""
    diagonal, sign = _diagonal(a)
    return diagonal.prod(-1) * sign, a, a[..., 0].int()


def sign_and_log(a: Any) -> tuple[Any, Any, Any, Any]:
    """`torch.linalg.slogdet` and placeholders for the factors."""
    diagonal, sign = _diagonal(a)
    return diagonal.sign().prod(-1) * sign, diagonal.abs().log().sum(-1), a, a[..., 0].int()


def cholesky(a: Any, *, upper: bool = False) -> Any:
    """`torch.linalg.cholesky`, column by column; NaN for a matrix that is not positive definite."""
    n, columns = _rows(a), list[Any]()
    rest = a.mT if upper else a
    for k in range(n):
        column = rest[..., k:, k]
        for known in columns:
            column = column - known[..., k:] * known[..., k, None]
        column = column / column[..., :1].sqrt()
        columns.append(torch.nn.functional.pad(column, (k, 0)))
    factor = torch.stack(columns, -1)
    return factor.mT if upper else factor


def matrix_exp(a: Any) -> Any:
    """The exponential of matrices: a Taylor polynomial of a / 2^s, squared s times (Moler and Van Loan, 2003).

    s is chosen for each matrix so that the polynomial is exact, at most `SQUARINGS`.
    """
    n = a.shape[-1]
    norm = a.abs().sum(-2).amax(-1)[..., None, None]
    count = norm.clamp(min=1).log2().ceil().clamp(max=SQUARINGS)
    x, one = a * torch.exp2(-count), torch.eye(n, dtype=a.dtype, device=a.device)
    result = one.expand(a.shape)
    for k in range(TERMS, 0, -1):
        result = one + (x @ result) / k
    for step in range(SQUARINGS):
        result = torch.where(step < count, result @ result, result)
    return result


def _unchecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` for an operation with a second result, the error code: always 0."""

    def both(a: Any, *args: Any, check_errors: bool = False, **kwargs: Any) -> tuple[Any, Any]:
        return function(a, *args, **kwargs), torch.zeros(a.shape[:-2], dtype=torch.int32, device=a.device)

    return both


def table() -> dict[Any, Callable[..., Any]]:
    """The function for each operation."""
    aten = torch.ops.aten
    return {
        aten.inverse.default: inverse,
        aten.linalg_inv.default: inverse,
        aten.linalg_matrix_exp.default: matrix_exp,
        aten.linalg_inv_ex.default: _unchecked(inverse),
        aten.linalg_cholesky.default: cholesky,
        aten.linalg_cholesky_ex.default: _unchecked(cholesky),
        aten.linalg_solve.default: solve,
        aten.linalg_solve_triangular.default: solve_triangular,
        aten._linalg_det.default: determinant,
        aten._linalg_slogdet.default: sign_and_log,
    }
