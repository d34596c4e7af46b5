"""Runs Python's cyclic garbage collector less often while a module is parsed or compiled.

Nearly all objects that a pass allocates are part of the program and stay. With Python's default thresholds the
collector visits them again and again, which takes a sixth of the time to compile 10,000 ops.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS, YOUNG, MIDDLE = 50_000, 10, 10
"""The thresholds of the three generations: new objects, then collections of the next younger generation."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect garbage less often inside the block; the thresholds are restored after it."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS, YOUNG, MIDDLE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
