"""Scatters on an emulated card: the bits of one place after the other, and places that indices do not name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering.kernels import kernels_for
from tests import tiers
from tests.emulator.corpus import KINDS
from tests.emulator.library import TARGETS, EmulatedLibrary, Kind
from tests.kernels.library_gemm import on_kernel
from tests.kernels.scatter import (
    ORDERED_SIZES,
    added_along,
    check_order,
    check_places,
    elements_added,
    in_order,
    places_ordered,
    rows_added,
    sums,
)


@pytest.mark.parametrize("kind", tiers.params(KINDS, ["cuda"]))
def test_sums_have_the_bits_of_one_place_after_the_other(kind: Kind, tmp_path: Path) -> None:
    cases = sums()
    library = EmulatedLibrary([case for case, _, _ in cases], tmp_path, kind)
    check_order(library, cases, (1, 40, 300))
    check_order(library, [case for case in cases if case[2] < 64], (4096, 4100))
    check_order(library, [case for case in cases if case[2] == 64], (4200,), (300,))


@pytest.mark.parametrize(("kind", "width"), [("cuda", 2100), ("rocm", 8200)])
def test_sums_of_long_rows_have_the_bits_of_one_place_after_the_other(kind: Kind, width: int, tmp_path: Path) -> None:
    """A block has a row, or one of two ranges; of all places that name one element, and of any."""
    cases = [(added_along("f32", 64, width), np.float32, 64), (added_along("f16", 64, 2 * width - 4), np.float16, 64)]
    library = EmulatedLibrary([case for case, _, _ in cases], tmp_path, kind)
    check_order(library, cases[:1], (4200,), (1, 2 * width))
    check_order(library, cases[1:], (2100,), (1, 2 * width))
    assert all("scatter_wide_rows_kernel" in name for name in library.executed) and library.executed


def test_tags_of_long_rows_begin_anew(tmp_path: Path) -> None:
    """Places that all name two elements with one tag take 262 rounds a step; the number of a round has 20 bits."""
    case = added_along("f32", 64, 8200)
    library = EmulatedLibrary([case], tmp_path, "cuda")
    rng = np.random.default_rng(7)
    x, v = (rng.normal(size=(64, n)).astype(np.float32) for n in (8200, 14_000))
    i = np.full((64, 14_000), 10_000)  # outside
    i[:2] = np.where(rng.integers(0, 2, (2, 14_000)) == 0, 3, 8195)
    (got,) = library.run(case, {"s": 14_000}, [x, v, i])
    np.testing.assert_array_equal(got, in_order(x, v, i, True))
    assert all("scatter_wide_rows_kernel" in name for name in library.executed) and library.executed


@pytest.mark.parametrize("kind", tiers.params(KINDS, ["cuda"]))
def test_places_are_ordered_at_the_borders_of_blocks_and_clusters(kind: Kind, tmp_path: Path) -> None:
    orders = {size: places_ordered(size) for size in ORDERED_SIZES}
    library = EmulatedLibrary(list(orders.values()), tmp_path, kind)
    check_places(library, orders, (0, 1, 4096, 4097))
    check_places(library, {600: orders[600]}, (8192, 8193, 65_536, 65_537))


@pytest.mark.parametrize("kind", KINDS)
def test_atomics_add_integers_and_where_asked_floats(kind: Kind, tmp_path: Path) -> None:
    integers, floats = on_kernel(added_along("i64", 5), "atomic"), on_kernel(rows_added("f32"), "atomic")
    rng = np.random.default_rng(3)
    library = EmulatedLibrary([integers, floats], tmp_path, kind, deterministic=False)
    x, v = rng.integers(-9, 9, (5, 300)), rng.integers(-9, 9, (5, 500))
    i = rng.integers(-400, 400, (5, 500))  # some are outside
    (got,) = library.run(integers, {"s": 500}, [x, v, i])
    want = x.copy()
    for row, (at, values) in enumerate(zip(i, v, strict=True)):
        known = (at >= -300) & (at < 300)
        np.add.at(want[row], at[known], values[known])
    np.testing.assert_array_equal(got, want)
    y, w = rng.normal(size=(600, 8)).astype(np.float32), rng.normal(size=(900, 8)).astype(np.float32)
    at = rng.integers(-700, 700, (900, 1))
    (sums_found,) = library.run(floats, {"s": 900}, [y, w, at])
    np.testing.assert_allclose(sums_found, in_order(y, w, at, False), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_add_to_few_elements_in_shared_memory(kind: Kind, tmp_path: Path) -> None:
    cases = [on_kernel(elements_added(t), "atomic") for t in ("i64", "f32")]
    rng = np.random.default_rng(4)
    library = EmulatedLibrary(cases, tmp_path, kind, deterministic=False)
    for case, dtype in zip(cases, (np.int64, np.float32), strict=True):
        for count in (20, 5000):
            x, v = rng.integers(-9, 9, 13).astype(dtype), rng.integers(-9, 9, count).astype(dtype)
            i = rng.integers(-16, 16, count)  # some are outside
            want, known = x.copy(), (i >= -13) & (i < 13)
            np.add.at(want, i[known], v[known])
            np.testing.assert_array_equal(
                library.run(case, {"s": count}, [x, v, i])[0], want
            )  # floats are whole numbers
    assert any("scatter_counters_kernel" in name for name in library.executed)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_count_in_parts_of_elements_that_shared_memory_has_no_room_for(kind: Kind, tmp_path: Path) -> None:
    case = on_kernel(elements_added("i64", 30_000, "1 x"), "atomic")
    library = EmulatedLibrary([case], tmp_path, kind)
    rng = np.random.default_rng(5)
    x, v, i = rng.integers(-9, 9, 30_000), np.array([3]), rng.integers(-31_000, 31_000, 125_000)  # some are outside
    known = (i >= -30_000) & (i < 30_000)
    (got,) = library.run(case, {"s": len(i)}, [x, v, i])
    np.testing.assert_array_equal(got, x + 3 * np.bincount(i[known] % 30_000, minlength=30_000))
    assert any("scatter_counters_kernel" in name for name in library.executed)


def test_floats_are_added_by_atomics_only_where_the_target_need_not_be_deterministic() -> None:
    for kind in KINDS:
        for t, strict in (("f32", False), ("i64", True), ("f16", False)):
            op, target = rows_added(t).op, TARGETS[kind]
            providers = {k.provider for k in kernels_for(op, target)}
            free = {k.provider for k in kernels_for(op, replace(target, deterministic=False))}
            assert ("atomic" in providers) == strict
            assert ("atomic" in free) == (t != "f16")
