"""The two tiers of the tests: `make test` runs a sample of the cases, `make test-full` all of them.

A case that only `make test-full` runs has the marker `full`; `pytest --collect-only -q -m "full and not gpu"` lists them.
The sample is the same every time: every form of every op, and every element type of every op, at least once. Tests that
compile many cases into one library compile those of the tier alone.

g++ takes three to five times as long with `-O3`, as kernels are shipped, as with `-O0`. So the sample compiles with `-O0` what is
not about the code of kernels; `as_shipped` says what is. Of many forms of a kernel some are compiled as shipped, the others
`quickly`. All tests of `make test-full` compile with `-O3`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FULL = True
"""Whether everything runs; `tests/conftest.py` sets it from the expression of `-m` before tests are collected."""

QUICK = "0"
"""`AIT_OPTIMIZE` in the tests of the sample, but for those that call `as_shipped`."""


def as_shipped(patch: pytest.MonkeyPatch) -> None:
    """Code built until the end of `patch` is optimized as for users."""
    patch.delenv("AIT_OPTIMIZE", raising=False)


def quickly(patch: pytest.MonkeyPatch) -> None:
    """Code built until the end of `patch` is optimized little, in a module that is otherwise `as_shipped`."""
    patch.setenv("AIT_OPTIMIZE", QUICK)


def pairs(forms: Sequence[K], types: Sequence[V], turn: int = 0) -> list[tuple[K, V]]:
    """Forms and types joined so that each form and each type is there, in as few pairs as can be."""
    count = max(len(forms), len(types)) if forms and types else 0
    return [(forms[i % len(forms)], types[(i + turn) % len(types)]) for i in range(count)]


def one_in(count: int, names: Iterable[K], turn: int) -> set[K]:
    """One of each `count` names: consumers with all the turns have all names."""
    return {name for i, name in enumerate(names) if i % count == turn % count}


def of_tier(cases: Mapping[K, V], sample: Iterable[K]) -> dict[K, V]:
    """The cases to compile at this tier: all, or those of the sample."""
    kept = set(sample)
    return {key: case for key, case in cases.items() if FULL or key in kept}


def params(keys: Iterable[K], sample: Iterable[K]) -> list[Any]:
    """Parameters of a test (several if a key is a tuple); parameters outside of the sample run only in `make
    test-full`.
    """
    kept = set(sample)
    return [
        key if key in kept else pytest.param(*(key if isinstance(key, tuple) else (key,)), marks=pytest.mark.full)
        for key in keys
    ]
