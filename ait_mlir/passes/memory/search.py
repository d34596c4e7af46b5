"""A search for a smaller arena, for a limited time, with the best placement that was found.

Greedy placement comes first. While its top is above the peak of live units, a limit between the peak and the top is
set, and buffers that end above it wait. The waiting buffer that is largest and meets most others goes to the place
where the buffers in its way weigh least; these wait again. A buffer that had to push others away weighs more from then
on, so that the next ones push something else. When none waits, all fit below the limit, and a lower limit follows.

This is guided ejection search (Nagata and Braeysy, doi 10.1016/j.orl.2009.04.006), with two changes that
`benchmarks/planner.py` asked for: weights fade, and the weight of what is in the way is blurred by chance.
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
"""Where the next limit is on the way from the peak to the best top."""
KEPT, BLUR = 0.97, 0.5
"""The part of the additional weights that is left after one step a buffer, and the share that chance adds to a sum."""
_AWAY = 1 << 60  # where waiting buffers are, above every place


class Search:
    """A strategy that ends after `seconds` by `clock` at the latest; `stopped` says whether time ran out.

    One object is for one plan: its time counts from when it is made.
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
        unit = math.gcd(*sizes.values())  # of all places, so that they stay aligned
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
    """Where the buffers are, which ones wait, and what the buffers weigh. Buffers are numbers from 0 on here."""

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
        """The ranks of the buffers that wait; the last one is placed next."""

    def lower_limit(self, limit: int) -> None:
        """Let the buffers that end above a limit wait."""
        self.limit = limit
        self._eject(np.flatnonzero(self._high > limit))

    def place_next(self) -> None:
        """Place one buffer, and eject what is in its way."""
        buffer = self._by_rank[self.waiting.pop()]
        near, size = self._near[buffer], self._sizes[buffer]
        low, high = self._low[near], self._high[near]
        # on each neighbour and below it; a limit stands for what is beyond it, where waiting neighbours are, too
        places = np.minimum(np.maximum(np.concatenate((high, low - size)), 0), self.limit - size)
        # in the way is what begins below the end and does not end at or below the start
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
        """For each point, the weights of the neighbours whose bounds are below it, or with "right" at it, too."""
        order = bounds.argsort()
        sums = np.concatenate(([0.0], self._weight[near[order]].cumsum()))
        return sums[bounds[order].searchsorted(points, side)]

    def placement(self, peak: int) -> Placement:
        """Where all buffers are."""
        lows = dict(zip(self._indices, self._low.tolist(), strict=True))
        spans = {i: (low, low + size) for (i, low), size in zip(lows.items(), self._sizes, strict=True)}
        return Placement(spans, max(high for _, high in spans.values()) == peak)

    def _eject(self, buffers: Ints) -> None:
        for buffer in buffers.tolist():
            insort(self.waiting, self._rank[buffer])
        self._low[buffers] = self._high[buffers] = _AWAY
