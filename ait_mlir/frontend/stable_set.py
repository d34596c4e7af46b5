"""`StableSet`: a set that keeps the order in which elements were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Generic, TypeVar

T = TypeVar("T")


class StableSet(MutableSet[T], Generic[T]):
    """A set whose iteration order is the order of insertion; equal to any set of the same elements.

    >>> StableSet([2, 1, 2])
    StableSet([2, 1])
    """

    def __init__(self, s: Iterable[T] | None = None):
        self._elements: dict[T, None] = dict.fromkeys(() if s is None else s)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[T]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __getitem__(self, index: int) -> T:
        """The element at a place in the order of insertion; a negative place counts from the end."""
        return list(self._elements)[index]

    def add(self, value: T) -> None:
        self._elements[value] = None

    def discard(self, value: T) -> None:
        self._elements.pop(value, None)

    def update(self, *others: Iterable[T]) -> None:
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def copy(self) -> StableSet[T]:
        return StableSet(self._elements)

    def __repr__(self) -> str:
        return f"StableSet({list(self._elements)})"
