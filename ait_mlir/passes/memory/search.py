"""A time-limited search for a smaller arena, which returns the best placement found.

It starts with greedy placement. While its top is above the peak of live units, the search sets a limit between the peak
and the top; buffers that end above the limit wait. The waiting buffer with the largest size and the most neighbours is
placed where the buffers in its way have the least total weight; it ejects them, and they wait again. A buffer that had
to eject others weighs more from then on, so that later buffers eject others. When no buffer waits, all fit below the
limit, and a lower limit is set.

This is guided ejection search (Nagata and Braeysy, doi 10.1016/j.orl.2009.04.006), with two changes that
`benchmarks/planner.py` showed to help: weights decay, and the total weights get random noise.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ait_mlir.passes.memory.placement import Lifetimes, Placement, greedy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NEXT_LIMIT = 0.92
"""The next limit, as a fraction of the way from the peak to the best top."""
KEPT, BLUR = 0.97, 0.5
"""The fraction of additional weights that remains after one step per buffer, and the random part added to a sum."""
_AWAY = 1 << 60  # where waiting buffers are, above every place


class Search:
    """A strategy that ends after `seconds` by `clock` at the latest; `stopped` says whether time ran out.

    One object is for one plan: its time starts when the object is made.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline = clock() + seconds
        self.stopped = False

    def __call__(self, sizes: Mapping[int, int], live: Lifetimes) -> Placement:
        """The best placement that was found, at least as good as the greedy one."""
        best = greedy(sizes, live)
        peak = live.peak(sizes)
        if best.optimal or best.top >= _AWAY // 2:
            return best
        unit = math.gcd(*sizes.values())  # all places are multiples of it, so that they stay aligned
        state = Ejections(sizes, live, best)
        while not best.optimal:
            state.lower_limit(min(best.top - unit, int(peak + (best.top - peak) * NEXT_LIMIT) // unit * unit))
            while state.waiting:
                if self._is_over():
                    self.stopped = True
                    return best
                state.place_next()
            best = state.placement(peak)
        return best

    def _is_over(self) -> bool:
        return self._clock() >= self._deadline

    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self._deadline - self._clock())


class Ejections:
    """The places and weights of the buffers, and the buffers that wait. Buffers are numbered from 0 here."""

    def __init__(self, sizes: Mapping[int, int], live: Lifetimes, start: Placement) -> None:
        self._indices = list(sizes)
        number = {index: i for i, index in enumerate(self._indices)}
        self._sizes = [sizes[index] for index in self._indices]
        self._near: list[Ints] = [
            np.array([number[j] for j in live.neighbours(index) if j in number and j != index], dtype=np.int64)
            for index in self._indices
        ]
        urgency = [size * (len(near) + 1) for size, near in zip(self._sizes, self._near, strict=True)]
        order = sorted(range(len(urgency)), key=lambda i: (urgency[i], i))
        self._rank = {buffer: rank for rank, buffer in enumerate(order)}
        self._by_rank = order
        self._low: Ints = np.array([start.spans[index][0] for index in self._indices], dtype=np.int64)
        self._high: Ints = self._low + np.array(self._sizes, dtype=np.int64)
        self._weight = np.ones(len(order))
        self._random = np.random.default_rng(0)
        self._steps = 0
        self.limit = start.top
        self.waiting: list[int] = []
        """The ranks of the waiting buffers; the last is placed next."""

    def lower_limit(self, limit: int) -> None:
        """Let the buffers that end above a limit wait."""
        self.limit = limit
        self._eject(np.flatnonzero(self._high > limit))

    def place_next(self) -> None:
        """Place one buffer, and eject the buffers in its way."""
        buffer = self._by_rank[self.waiting.pop()]
        near, size = self._near[buffer], self._sizes[buffer]
        low, high = self._low[near], self._high[near]
        # candidates: on each neighbour and below it, clipped to the limit; waiting neighbours are above the limit
        places = np.minimum(np.maximum(np.concatenate((high, low - size)), 0), self.limit - size)
        # a neighbour is in the way if it begins below the end and does not end at or below the start
        sums = self._below(near, low, places + size, "left") - self._below(near, high, places, "right")
        sums *= 1 + BLUR * self._random.random(len(sums))
        sums += 1e-9 / self.limit * places  # of places with equal sums the lowest
        place = int(places[sums.argmin()])
        ejected = near[(low < place + size) & (high > place)]
        if len(ejected):
            self._weight[buffer] += 1
            self._eject(ejected)
        self._low[buffer], self._high[buffer] = place, place + size
        self._steps += 1
        if self._steps % len(self._sizes) == 0:
            self._weight = 1 + KEPT * (self._weight - 1)

    def _below(self, near: Ints, bounds: Ints, points: Ints, side: Literal["left", "right"]) -> Floats:
        """For each point, the total weight of the neighbours with bounds below it (with "right": or equal)."""
        order = bounds.argsort()
        sums = np.concatenate(([0.0], self._weight[near[order]].cumsum()))
        return sums[bounds[order].searchsorted(points, side)]

    def placement(self, peak: int) -> Placement:
        """The current places of all buffers as a `Placement`."""
        lows = dict(zip(self._indices, self._low.tolist(), strict=True))
        spans = {i: (low, low + size) for (i, low), size in zip(lows.items(), self._sizes, strict=True)}
        return Placement(spans, max(high for _, high in spans.values()) == peak)

    def _eject(self, buffers: Ints) -> None:
        for buffer in buffers.tolist():
            insort(self.waiting, self._rank[buffer])
        self._low[buffers] = self._high[buffers] = _AWAY
