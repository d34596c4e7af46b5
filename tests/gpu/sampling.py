"""`--sample N`: a fair part of the tests of tests/gpu, for a short session on a card.

Of each file, and in it of each family of operations, at most N tests are kept: a draw by the digests of their names. So it
is the same on every machine, and a new test changes little of it; `N:SEED` is another draw.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest


class Sample(NamedTuple):
    """At most `count` tests of each group, drawn with `seed`."""

    count: int
    seed: int = 0


def sample(text: str) -> Sample:
    """The value of `--sample`."""
    found = re.fullmatch(r"([1-9]\d*)(?::(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no sample; expected a number of tests like 40, or 40:7 with a seed"
        )
    return Sample(int(found[1]), int(found[2] or 0))


def keep_sample(config: pytest.Config, items: list[pytest.Item], drawn: Sample) -> None:
    """Deselect the tests of tests/gpu that are not in the sample."""
    groups: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.path.parent.name == "gpu":
            groups.setdefault(group(item), []).append(item)
    out = {item for tests in groups.values() for item in _in_order(tests, drawn.seed)[drawn.count :]}
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


def group(item: pytest.Item) -> tuple[str, str]:
    """The file of a test, and the family of operations that it is about."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(item.path), str(parameters.get("family", ""))


def _in_order(items: Sequence[pytest.Item], seed: int) -> list[pytest.Item]:
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed} {item.nodeid}".encode()).digest())
