"""Placement of buffers whose sizes are multiples of one unit: the strategies that do not search.

A strategy is a function of the sizes by index and the lifetimes. It gives each buffer a span of units, so that buffers
that are live together have disjoint spans.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ait_mlir.passes.memory.buffers import Buffer


@dataclass(frozen=True)
class Placement:
    """The span `[low, high)` of each buffer by index, and whether a smaller top is proved to be impossible."""

    spans: dict[int, tuple[int, int]]
    optimal: bool

    @property
    def top(self) -> int:
        """The end of the highest span, in units."""
        return max((high for _, high in self.spans.values()), default=0)


Strategy = Callable[[Mapping[int, int], "Lifetimes"], Placement]
"""A function that places buffers, given their sizes by index and their lifetimes."""


def greedy(sizes: Mapping[int, int], live: Lifetimes) -> Placement:
    """Place buffers by size; if the top is above the peak of live units, use the best of three orders
    (arXiv 2001.03288)."""
    peak = live.peak(sizes)
    best = in_order(sizes, live, peak, _ORDERS[0])
    for order in _ORDERS[1:]:
        if best.optimal:
            break
        found = in_order(sizes, live, peak, order)
        if found.top < best.top:
            best = found
    return best


Order = Callable[[int, int, int], tuple[int, ...]]


def in_order(sizes: Mapping[int, int], live: Lifetimes, peak: int, order: Order) -> Placement:
    """Place each buffer in the smallest gap that holds it, in the `order` of size, length of life and index."""
    placed: dict[int, tuple[int, int]] = {}
    for index in sorted(sizes, key=lambda i: order(sizes[i], live.length(i), i)):
        size = sizes[index]
        low = best_gap(placed, live.neighbours(index), size, None)
        assert low is not None
        placed[index] = (low, low + size)
    found = Placement(placed, False)
    return Placement(placed, found.top == peak)


_ORDERS: tuple[Order, ...] = (
    lambda size, length, index: (-size, -length, index),
    lambda size, length, index: (-size * length, -size, index),
    lambda size, length, index: (-length, -size, index),
)


def best_gap(placed: dict[int, tuple[int, int]], neighbours: Iterable[int], size: int, limit: int | None) -> int | None:
    """The start of the smallest gap that holds `size` between spans of neighbours; else above them, below `limit`."""
    spans = sorted([placed[i] for i in neighbours if i in placed])
    at, best, room = 0, None, 0
    for low, high in spans:
        if low - at >= size and (best is None or low - at < room):
            best, room = at, low - at
        if high > at:
            at = high
    if limit is not None and limit - at >= size and (best is None or limit - at < room):
        return at
    return at if best is None and limit is None else best


class Lifetimes:
    """Which buffers are live together, by index: for each buffer a list of older and a range of newer buffers."""

    def __init__(self, buffers: Sequence[Buffer]):
        self._buffers = buffers
        self._order = sorted(range(len(buffers)), key=lambda i: buffers[i].start)
        self._starts = [buffers[i].start for i in self._order]
        self._older: list[list[int]] = [[] for _ in buffers]
        active: list[int] = []
        begin = 0
        while begin < len(self._order):
            start = self._starts[begin]
            end = bisect_right(self._starts, start, begin)
            active = [i for i in active if buffers[i].end > start]
            for index in self._order[begin:end]:
                self._older[index] = active  # one list for all buffers with this start
            active = active + self._order[begin:end]
            begin = end

    def length(self, index: int) -> int:
        """The number of positions for which a buffer is live."""
        return self._buffers[index].end - self._buffers[index].start

    def span(self, index: int) -> tuple[int, int]:
        """The first position of a buffer's lifetime, and the position after its last."""
        return self._buffers[index].start, self._buffers[index].end

    def neighbours(self, index: int) -> list[int]:
        """The buffers that are live at a common position with this buffer, including itself."""
        buffer = self._buffers[index]
        first = bisect_left(self._starts, buffer.start)
        return self._older[index] + self._order[first : bisect_left(self._starts, buffer.end, first)]

    def peak(self, sizes: Mapping[int, int]) -> int:
        """The largest sum of `sizes` of buffers that are live at one position."""
        events: list[tuple[int, int]] = []
        for index, size in sizes.items():
            events.append((self._buffers[index].start, size))
            events.append((self._buffers[index].end, -size))
        now = highest = 0
        for _, change in sorted(events):  # an end sorts before a start at the same position
            now += change
            highest = max(highest, now)
        return highest
