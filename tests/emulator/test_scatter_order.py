"""Scatters on an emulated card: the bits of one place after the other, and places that indices do not name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering.kernels import kernels_for
from tests.emulator.corpus import KINDS
from tests.emulator.library import TARGETS, EmulatedLibrary, Kind
from tests.kernels.library_gemm import on_kernel
from tests.kernels.scatter import added_along, check_order, in_order, rows_added, sums


@pytest.mark.parametrize("kind", KINDS)
def test_sums_have_the_bits_of_one_place_after_the_other(kind: Kind, tmp_path: Path) -> None:
    cases = sums()
    library = EmulatedLibrary([case for case, _, _ in cases], tmp_path, kind)
    check_order(library, cases, (1, 40, 300))
    check_order(library, [case for case in cases if case[2] < 64], (4096, 4100))


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


def test_floats_are_added_by_atomics_only_where_the_target_need_not_be_deterministic() -> None:
    for kind in KINDS:
        for t, strict in (("f32", False), ("i64", True), ("f16", False)):
            op, target = rows_added(t).op, TARGETS[kind]
            providers = {k.provider for k in kernels_for(op, target)}
            free = {k.provider for k in kernels_for(op, replace(target, deterministic=False))}
            assert ("atomic" in providers) == strict
            assert ("atomic" in free) == (t != "f16")
