"""Settings from the environment: `AIT_*` variables (docs/internals.md, section 10)."""

from __future__ import annotations

import os
from pathlib import Path

from ait_mlir.errors import InputError


def whole_number(name: str, largest: int) -> int | None:
    """The number in a variable; None if it is not set. Raises `InputError` unless it is 1 to `largest`."""
    text = os.environ.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= largest):
        raise InputError(f"{name} is {text!r}, expected a whole number from 1 to {largest}")
    return int(text)


def named_library(name: str) -> list[str]:
    """The shared library in a variable, a path or a name for the loader; an empty list if it is not set.

    Raises `InputError` for a path that does not exist.
    """
    text = os.environ.get(name)
    if text and "/" in text and not Path(text).is_file():
        raise InputError(f"{name} is {text!r}, but there is no such file")
    return [text] if text else []
