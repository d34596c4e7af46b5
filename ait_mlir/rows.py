"""Rows of tables with their place in the source, so that the error for two rows of one name shows both places."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar


@dataclass(frozen=True)
class Row:
    """A row of a table: a name, and the place in the source where the row was written."""

    name: str
    place: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  (what called the constructor)
        object.__setattr__(self, "place", f"{frame.f_code.co_filename}:{frame.f_lineno}")


RowT = TypeVar("RowT", bound=Row)


def table(what: str, rows: Iterable[RowT]) -> dict[str, RowT]:
    """The rows by name, in order; `ValueError` with both places for two rows of one name."""
    found: dict[str, RowT] = {}
    for row in rows:
        other = found.setdefault(row.name, row)
        if other is not row:
            raise ValueError(f"two {what} are called {row.name!r}: {other.place} and {row.place}")
    return found
