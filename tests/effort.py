"""What code does, counted in calls: how quick it is, said by a number that no other load on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import pytest


@dataclass
class Effort:
    """How many functions were called, those of C included."""

    calls: int = 0


@contextmanager
def at_most(calls: int) -> Iterator[Effort]:
    """Count the calls that this thread makes in the block; more than `calls` stop it and fail the test.

    A loop that calls nothing is not seen; pytest's faulthandler_timeout ends it.
    """
    effort = Effort()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            effort.calls += 1
            if effort.calls > calls:
                sys.setprofile(None)
                pytest.fail(f"more than {calls} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield effort
    finally:
        sys.setprofile(before)
