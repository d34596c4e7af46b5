"""Embedding on the CPU: id types, strides, empty sizes, ids outside of the table."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import Case, Library

IDS = {"i32": np.int32, "i64": np.int64}


def embedding(t: str, ids: str, **options: object) -> Case:
    return Case(
        f"ait.graph @g(%t: !ait.tensor<11 x 24 x {t}>, %i: !ait.tensor<b x s x {ids}>) dims {{b = 0 to 9, s = 0 to 900}} {{\n"
        f"  %y = ait.embedding %t, %i : !ait.tensor<b x s x 24 x {t}>\n"
        f'  ait.output "y" %y : !ait.tensor<b x s x 24 x {t}>\n}}',
        **options,  # type: ignore[arg-type]
    )


CASES = {
    (t, ids, layout): embedding(t, ids, **options)
    for t in ("f16", "bf16", "f32", "i8", "i64")
    for ids in IDS
    for layout, options in (
        ("plain", {}),
        (
            "strided",
            {"strides": {0: ("30", "1"), 1: ("1", "2*b"), 2: ("s*50", "50", "1")}, "offset": 1},
        ),
    )
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([*CASES.values()], tmp_path_factory.mktemp("gather"))


@pytest.mark.parametrize("key", CASES, ids="-".join)
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (8, 700)])
def test_gather(library: Library, key: tuple[str, str, str], shape: tuple[int, int]) -> None:
    check_rows(library, key, shape)


def check_rows(library: Library, key: tuple[str, str, str], shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(-100, 100, (11, 24)).astype(np.float64)
    ids = rng.integers(0, 11, shape).astype(IDS[key[1]])
    (got,) = library.run(CASES[key], dict(zip("bs", shape, strict=True)), [table, ids])
    np.testing.assert_array_equal(got.astype(np.float64), table[ids])


@pytest.mark.parametrize("bad", [-1, 11, 2**31 - 1])
def test_an_id_outside_of_the_table_is_named(library: Library, bad: int) -> None:
    ids = np.zeros((2, 3), np.int32)
    ids[1, 1] = bad
    with pytest.raises(
        RuntimeError, match=rf"id {bad} at place 4 of the ids is outside of the table, which has 11 rows"
    ):
        library.run(CASES["f32", "i32", "plain"], {"b": 2, "s": 3}, [np.zeros((11, 24), np.float32), ids])
