"""Effort is counted: in calls of Python and of C, and too many end what makes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.effort import at_most

MADE: list[int] = []


def of_python(times: int) -> None:
    def note(i: int) -> None:
        MADE[-1:] = [i]

    for i in range(times):
        note(i)


def of_c(times: int) -> None:
    for i in range(times):
        MADE.append(i)


@pytest.mark.parametrize("work", [of_python, of_c])
def test_too_many_calls_end_the_work(work: Callable[[int], None]) -> None:
    MADE.clear()
    with at_most(120):
        work(100)
    assert MADE[-1] == 99
    MADE.clear()
    with pytest.raises(pytest.fail.Exception, match="more than 120 calls"), at_most(120):
        work(1000)
    assert 90 < MADE[-1] < 120


def test_code_that_catches_all_errors_is_ended_too() -> None:
    def stubborn() -> None:
        with suppress(Exception):
            of_c(1000)

    with pytest.raises(pytest.fail.Exception), at_most(100):
        stubborn()


def test_a_block_leaves_what_it_found() -> None:
    def outer(*_: object) -> None: ...

    found = sys.getprofile()
    sys.setprofile(outer)
    try:
        with at_most(100):
            pass
        assert sys.getprofile() is outer
        with pytest.raises(pytest.fail.Exception), at_most(100):
            of_c(1000)
        assert sys.getprofile() is outer
    finally:
        sys.setprofile(found)
