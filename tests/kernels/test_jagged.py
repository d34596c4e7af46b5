"""What a CPU says about offsets and ids that are wrong: the op, the value and its place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import Case, Library
from tests.specs.jagged import EMBEDDING_BAG, JAGGED_TO_PADDED, PADDED_TO_JAGGED, PRODUCT, at

BAG = EMBEDDING_BAG.drawn("max-i64", "f32")
PAD, PAD_TWO = (JAGGED_TO_PADDED.drawn(name, "f32") for name in ("one", "two"))
UNPAD, VECTOR = PADDED_TO_JAGGED.drawn("one", "f32"), PRODUCT.drawn("words", "f32")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([BAG, PAD, PAD_TWO, UNPAD, VECTOR], tmp_path_factory.mktemp("jagged"))


def bag(ids: list[int], offsets: list[int]) -> list[np.ndarray]:
    return [np.zeros((11, 24), np.float32), np.array(ids), np.array(offsets)]


@pytest.mark.parametrize(
    ("ids", "offsets", "message"),
    [
        ([1, 2, 3], [0, 2, 1], "embedding_bag: offset 1 at place 2 of offsets 0 is below the one before it, 2"),
        ([1, 2, 3], [-1, 2, 3], "embedding_bag: offset -1 at place 0 of offsets 0 is below the first row, 0"),
        ([1, 2, 3], [0, 2, 4], "offset 4 at place 2 of offsets 0 is beyond the data, which has 3 rows"),
        ([1, 11, 3], [0, 2, 3], "embedding_bag: id 11 at place 1 of the ids is outside of the table, which has 11"),
        ([1, 2, -1], [0, 2, 3], "embedding_bag: id -1 at place 2 of the ids is outside of the table, which has 11"),
    ],
)
def test_bags(library: Library, ids: list[int], offsets: list[int], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        library.run(BAG, {"o": 2, "n": 3}, bag(ids, offsets))


@pytest.mark.parametrize("case", [PAD, UNPAD, VECTOR], ids=["pad", "unpad", "vector"])
@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 5, 4], "offset 4 at place 2 of offsets 0 is below the one before it, 5"),
        ([0, 5, 10], "offset 10 at place 2 of offsets 0 is beyond the data, which has 9 rows"),
        ([0, 8, 9], "sequence 0 of offsets 0 has 8 rows, more than the declared 7"),
    ],
)
def test_sequences(library: Library, case: Case, offsets: list[int], message: str) -> None:
    env = at(2, 9, 2)
    shapes = [[d.evaluate(env) for d in arg.type.dims] for arg in case.args()[0]]
    given = [np.zeros(shape, np.float32) for shape in shapes[:-1]]
    with pytest.raises(RuntimeError, match=f"{case.op.name.removeprefix('ait.')}: {message}"):
        library.run(case, env, [*given, np.array(offsets, np.int32)])


def test_offsets_of_a_second_level(library: Library) -> None:
    given = [np.zeros((9, 3), np.float32), np.array([0, 1, 2], np.int32), np.array([0, 6, 9], np.int32)]
    with pytest.raises(RuntimeError, match="sequence 0 of offsets 1 has 6 rows, more than the declared 5"):
        library.run(PAD_TWO, at(2, 9, 2), given)
    given[1:] = [np.array([0, 1, 3], np.int32), np.array([0, 4, 9], np.int32)]
    with pytest.raises(RuntimeError, match="offset 3 at place 2 of offsets 0 is beyond the data, which has 2 rows"):
        library.run(PAD_TWO, at(2, 9, 2), given)


def test_rows_behind_the_last_sequence_are_zero(library: Library) -> None:
    given = [np.ones((2, 7, 16), np.float32), np.array([0, 2, 3], np.int32)]
    (out,) = library.run(UNPAD, at(2, 9, 2), given)
    np.testing.assert_array_equal(out[:, 0], [1, 1, 1, 0, 0, 0, 0, 0, 0])
