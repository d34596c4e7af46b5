"""Gather and scatter beside the cases of their specification: indices from the end, and outside of a dim."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import Library
from tests.specs import SPECS

GATHER = SPECS["gather"].drawn("two", "f32")
SCATTER = SPECS["scatter"].drawn("add-rows", "f32")
ENV = {"b": 2, "s": 3}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([GATHER, SCATTER], tmp_path_factory.mktemp("take"))


def test_indices_below_zero_count_from_the_end(library: Library) -> None:
    x = np.arange(7 * 3 * 9, dtype=np.float32).reshape(7, 3, 9)
    i, j = np.array([-1, 2]).reshape(2, 1, 1), np.array([0, -9, -2]).reshape(3, 1)
    (got,) = library.run(GATHER, ENV, [x, i, j])
    np.testing.assert_array_equal(got, x.transpose(0, 2, 1)[i[..., 0], j[:, 0]])

    whole, rows = np.zeros((11, 24), np.float32), np.ones((3, 24), np.float32)
    (got,) = library.run(SCATTER, ENV, [whole, rows, np.array([[-11], [10], [-1]])])
    assert got.sum(1).tolist() == [24.0, *[0.0] * 9, 48.0]


@pytest.mark.parametrize("bad", [-8, 7, 2**40, -(2**63), 2**63 - 3])
def test_an_index_outside_of_its_dim_is_named(library: Library, bad: int) -> None:
    i = np.array([0, bad]).reshape(2, 1, 1)
    with pytest.raises(
        RuntimeError, match=rf"gather: index {bad} of index tensor 0 is outside of its dim, which has 7"
    ):
        library.run(GATHER, ENV, [np.zeros((7, 3, 9), np.float32), i, np.zeros((3, 1), np.int64)])
    j = np.array([0, bad + 2 if bad > 0 else max(bad - 2, -(2**63)), 0]).reshape(3, 1)
    with pytest.raises(RuntimeError, match=rf"index {j[1, 0]} of index tensor 1 is outside of its dim, which has 9"):
        library.run(GATHER, ENV, [np.zeros((7, 3, 9), np.float32), np.zeros_like(i), j])


def test_a_scatter_with_an_index_outside_writes_nothing(library: Library) -> None:
    with pytest.raises(RuntimeError, match=r"scatter: index 11 of index tensor 0 is outside of its dim, which has 11"):
        library.run(
            SCATTER, ENV, [np.zeros((11, 24), np.float32), np.ones((3, 24), np.float32), np.array([[1], [11], [0]])]
        )
