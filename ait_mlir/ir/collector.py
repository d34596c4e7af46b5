"""Python's cyclic garbage collector, less often while a module is parsed or compiled.

Nearly everything that a pass allocates is part of the program and stays. With Python's own limits the collector walks
it again and again: a sixth of the time to compile 10,000 ops.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS, YOUNG, MIDDLE = 50_000, 10, 10
"""New objects before a collection of these, and how many of such before one of older objects."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect less often in the block; what was set before is set again after it."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS, YOUNG, MIDDLE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
