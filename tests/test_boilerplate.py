"""The count of boilerplate counts what it says, and the family that the structure was measured by stays below its limit."""

from __future__ import annotations

import pytest

from tests.boilerplate import boilerplate, of_family

SOURCE = '''"""A family."""

from __future__ import annotations

from somewhere import (
    One,
    Two,
)


@definition
class Op(One):
    name = "op"

    def __init__(
        self, x: int
    ) -> None:
        self.x = x

    def infer(self) -> int:
        return helper(1)


def helper(x: int) -> int:
    return x


OPS = (
    Op,
)
'''


def test_each_kind_is_counted() -> None:
    assert boilerplate(SOURCE) == {"imports": 5, "headers": 2 + 1, "constructors": 4, "tables": 3}


def test_the_cumulative_family_needs_few_lines_before_its_own() -> None:
    counts = of_family("cumulative")
    assert sum(found.total() for found in counts.values()) <= 89
    assert counts["ait_mlir/families.py"] == {"tables": 1}


def test_a_family_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no family is called 'cumulatve'"):
        of_family("cumulatve")
