"""How threads hold the rows of which `kth_value` selects."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.kernels.sorting import row_shares


@pytest.mark.parametrize(
    ("length", "share"),
    [
        (1, (1, 4)),
        (7, (1, 8)),
        (32, (1, 32)),
        (57, (2, 32)),
        (100, (4, 28)),
        (1024, (32, 32)),
        (1025, (256, 8)),
        (9001, (256, 32)),
    ],
)
def test_a_row_of_one_length_has_as_few_threads_as_can_hold_it(length: int, share: tuple[int, int]) -> None:
    assert row_shares(length, length, 32) == [share]


def test_rows_of_many_lengths_choose_when_they_run() -> None:
    assert row_shares(1, 10000, 16) == [(1, 16), (8, 16), (32, 16), (256, 16)]
    assert row_shares(1, 100, 32) == [(1, 32), (8, 32)]
    assert row_shares(40, 2000, 32) == [(8, 32), (32, 32), (256, 32)]
