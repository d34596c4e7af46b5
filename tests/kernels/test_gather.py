"""Embedding on the CPU beside the cases of its specification: ids outside of the table."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import Library
from tests.specs import SPECS

PLAIN = SPECS["embedding"].drawn("plain-i32", "f32")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([PLAIN], tmp_path_factory.mktemp("gather"))


@pytest.mark.parametrize("bad", [-1, 11, 2**31 - 1])
def test_an_id_outside_of_the_table_is_named(library: Library, bad: int) -> None:
    ids = np.zeros((2, 3), np.int32)
    ids[1, 1] = bad
    with pytest.raises(
        RuntimeError, match=rf"id {bad} at place 4 of the ids is outside of the table, which has 11 rows"
    ):
        library.run(PLAIN, {"b": 2, "s": 3}, [np.zeros((11, 24), np.float32), ids])
