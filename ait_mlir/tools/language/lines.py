"""Results by line of text, remembered while the lines are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

CHARACTERS = 50_000
"""The lines of so many characters are remembered at least."""
_room = CHARACTERS


def make_room(characters: int) -> None:
    """Let the lines of a text of so many characters be remembered."""
    global _room
    _room = max(CHARACTERS, characters)


class ByLine(Generic[T]):
    """A function of a line that remembers its results for recent lines.

    Results are in two dicts. When the newer dict is full, the older one is dropped, and an empty one becomes the newer.
    A line that is asked for again moves to the newer dict. Together they hold at most twice the characters of the
    limit.
    """

    def __init__(self, function: Callable[[str], T]) -> None:
        self._function = function
        self._new: dict[str, T] = {}
        self._old: dict[str, T] = {}
        self._size = 0

    def __call__(self, line: str) -> T:
        if (found := self._new.get(line)) is not None:
            return found
        found = self._old.pop(line, None)
        if found is None:
            found = self._function(line)
        self._size += len(line) + 1
        if self._size > _room + 1:
            self._old, self._new, self._size = self._new, {}, len(line) + 1
        self._new[line] = found
        return found

    @property
    def remembered(self) -> int:
        """The characters of the lines whose results are remembered."""
        return sum(len(line) + 1 for lines in (self._old, self._new) for line in lines)
