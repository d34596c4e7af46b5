"""Settings from the environment: `AIT_*` variables (docs/internals/environment.md)."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path

from ait_mlir.errors import InputError


def whole_number(name: str, largest: int, least: int = 1) -> int | None:
    """The number in a variable; None if it is not set. Raises `InputError` unless it is `least` to `largest`."""
    text = os.environ.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= largest):
        raise InputError(f"{name} is {text!r}, expected a whole number from {least} to {largest}")
    return int(text)


MEASURE_SECONDS = 20.0
MEASURE_DEVICES: ContextVar[tuple[int, ...]] = ContextVar("MEASURE_DEVICES", default=(0,))
"""The numbers of the cards on which a compilation times kernels, all at the same time."""


def measure_budget() -> float:
    """`AIT_MEASURE_BUDGET`: the seconds that a compilation may spend on timing kernels if there is a card.

    Raises `InputError` unless it is a number, 0 or more.
    """
    text = os.environ.get("AIT_MEASURE_BUDGET")
    if not text:
        return MEASURE_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(f"AIT_MEASURE_BUDGET is {text!r}, expected a number of seconds, 0 or more")
    return seconds


def keeps_plans() -> bool:
    """`AIT_PLANS`: whether compilations keep plans in the cache, and take them from there; `0` for no."""
    return os.environ.get("AIT_PLANS") != "0"


def named_library(name: str) -> list[str]:
    """The shared library in a variable, a path or a name for the loader; an empty list if it is not set.

    Raises `InputError` for a path that does not exist.
    """
    text = os.environ.get(name)
    if text and "/" in text and not Path(text).is_file():
        raise InputError(f"{name} is {text!r}, but there is no such file")
    return [text] if text else []
