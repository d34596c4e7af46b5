"""Tests of clients that cannot pass, with the reason: no document describes what they ask for, or a machine has no such device."""

from __future__ import annotations

import re

UNFAIR: dict[str, tuple[tuple[str, str], ...]] = {"aitemplate": (), "cudnn": (), "notebooks": ()}
"""For each suite regular expressions of names of tests, `FILE::CLASS::METHOD`, and the reason."""
UNFAIR_ERRORS: tuple[tuple[str, str], ...] = (
    (r"not implemented for '(?:Half|BFloat16)'", "PyTorch has no such function on a CPU"),
)
"""Regular expressions of the exception that ended a test, and the reason."""


def unfair(suite: str, name: str) -> str | None:
    """Why a test cannot be expected to pass, by its name; None if it can."""
    return next((why for pattern, why in UNFAIR[suite] if re.search(pattern, name)), None)
