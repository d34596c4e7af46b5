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
    assert sum(found.total() for found in counts.values()) <= 77
    assert counts["ait_mlir/families.py"] == {"tables": 1}
    assert sum(found.total() for found in of_family("cumulative", "cumsum").values()) <= 65


OPERATORS = """
from here import Base, base
from there import Other


class Shared(Base):
    pass


class first(Shared):
    pass


class second(Shared):
    helper = Other
"""
ROWS = """
from here import Row, one
from there import two


def first(c):
    return one(c)


def second(c):
    return two(c)


ROWS: dict[str, Row] = {
    "aten.first.default": first,
    "aten.second.default": second,
}
"""


def test_an_operator_needs_only_what_it_reaches() -> None:
    assert boilerplate(OPERATORS) == {"imports": 2, "headers": 3}
    assert boilerplate(OPERATORS, "first") == {"imports": 1, "headers": 2}
    assert boilerplate(OPERATORS, "second") == {"imports": 2, "headers": 2}
    assert boilerplate(ROWS) == {"imports": 2, "tables": 4}
    assert boilerplate(ROWS, "first") == {"imports": 1, "tables": 3}
    assert boilerplate(SOURCE, "first") == boilerplate(SOURCE)


def test_a_family_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no family is called 'cumulatve'"):
        of_family("cumulatve")
    with pytest.raises(ValueError, match="cumulative has no operator 'cumsun'"):
        of_family("cumulative", "cumsun")
