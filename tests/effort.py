"""Counts the calls that code makes: a measure of speed that does not depend on the load of the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Fail the test where this thread calls more functions in the block, those of C and a few of our own included.

    The call that is one too many is not made. A loop that calls nothing is not seen; pytest's faulthandler_timeout ends it.
    """
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        if event in ("call", "c_call"):
            made += 1
            if made > calls:
                sys.setprofile(None)
                pytest.fail(f"more than {calls} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
