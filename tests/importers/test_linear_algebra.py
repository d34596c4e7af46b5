"""Small linear systems, against PyTorch, by the meaning of the ops they become: float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim

from ait_mlir.importers.torch import ImportFailure, from_torch
from ait_mlir.reference.graph import evaluate_graph
from tests.importers.function import Function
from tests.importers.meaning import B, check_meaning
from tests.importers.test_ops import floats


def positive(x):
    """A positive definite matrix of each batch."""
    return x @ x.mT + torch.eye(x.shape[-2], dtype=x.dtype)


CASES = {
    "inverse": torch.linalg.inv,
    "determinant": torch.linalg.det,
    "logarithm_of_the_determinant": lambda x: tuple(torch.linalg.slogdet(x)),
    "cholesky": lambda x: (torch.linalg.cholesky(positive(x)), torch.linalg.cholesky(positive(x), upper=True)),
    "solutions": lambda x: (
        torch.linalg.solve(x, x + 1),
        torch.linalg.solve(x, x[..., 0]),
        torch.linalg.solve(x[0], x[:, :, :2]),
        torch.linalg.solve(x, x[..., :2, :], left=False),
    ),
    "zeros_on_the_diagonal": lambda x: torch.linalg.inv(x * (1 - torch.eye(4, dtype=x.dtype))),
    "whitening": lambda x: torch.linalg.solve_triangular(torch.linalg.cholesky(positive(x)), x, upper=False),
    "triangles": lambda x: (
        torch.linalg.solve_triangular(x, x[..., :2], upper=True, unitriangular=True),
        torch.linalg.solve_triangular(x, x[..., :2, :], upper=False, left=False),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_systems_of_four(name):
    torch.manual_seed(0)
    check_meaning(Function(CASES[name]).eval(), (floats(2, 4, 4),), ({0: B},))


@pytest.mark.parametrize("rows", [17, 32])
def test_large_triangles(rows):
    torch.manual_seed(0)

    def solutions(x):
        return (
            torch.linalg.solve_triangular(x, x[..., :2], upper=True),
            torch.linalg.solve_triangular(x, x[..., :3, :], upper=False, left=False, unitriangular=True),
        )

    x = torch.randn(2, rows, rows, dtype=torch.float64) / rows + torch.eye(rows, dtype=torch.float64)
    imported = from_torch(Function(solutions).eval(), (x,), dynamic_shapes=(({0: B},),))
    found = evaluate_graph(imported.graph, {imported.inputs.tensors[0].name: x.numpy()}, imported.constants, {"batch": 2})
    for (_, name), want in zip(imported.outputs, solutions(x), strict=True):
        np.testing.assert_allclose(found[name], want.numpy(), rtol=1e-9, atol=1e-9)


def test_one_row():
    torch.manual_seed(0)
    check_meaning(Function(lambda x: (torch.linalg.inv(x), torch.linalg.det(x))).eval(), (floats(2, 1, 1),), ({0: B},))


@pytest.mark.parametrize("shape", [(2, 17, 17), "dynamic"])
def test_large_and_dynamic_systems_are_refused(shape):
    n = Dim("n", min=2, max=9)
    given = (torch.randn(3, 3),) if shape == "dynamic" else (torch.randn(shape),)
    dims = ({0: n, 1: n},) if shape == "dynamic" else None
    with pytest.raises(ImportFailure, match="linalg_inv"):
        from_torch(Function(torch.linalg.inv).eval(), given, dynamic_shapes=(dims,) if dims else None)
