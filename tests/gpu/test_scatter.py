"""Scatters with duplicates on a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Library
from tests.kernels.scatter import check_order, check_ordered, ordered_cases, sums

pytestmark = pytest.mark.gpu


def test_sums_have_the_bits_of_one_place_after_the_other(tmp_path: Path) -> None:
    cases = sums()
    library = Library([case for case, _, _ in cases], tmp_path, Target("cuda", default_arch("cuda")))
    check_order(library, cases, (1, 40, 300, 4096, 4100, 20000))


def test_scatters_in_a_given_order_have_the_bits_of_one_place_after_the_other(tmp_path: Path) -> None:
    cases = ordered_cases()
    library = Library(list(cases.values()), tmp_path, Target("cuda", default_arch("cuda")))
    for name, case in cases.items():
        if name != "order":
            check_ordered(library, cases["order"], case, (1, 40, 300, 4096, 4100, 20000))
