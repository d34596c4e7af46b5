"""A search for a smaller arena, for a limited time, with the best placement that was found.

Greedy placement comes first. If it is above the peak of live units, beam searches follow until the time is up or the
peak is reached; each has other random weights and a limit below the best top so far.

A beam search puts one buffer after another on the skyline: the highest end of a placed buffer, at each position. Any
placement can be made so, from the lowest buffer to the highest one. What lies below a skyline counts as full, so at
each position the skyline and the sizes that are still missing are a lower bound of the top; a state above the limit is
dropped. Each state proposes a few buffers: those that would lie low, live long, and are short of room. Of all proposed
states those with the lowest bounds, as a mean of powers over the positions, go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.passes.memory.placement import Lifetimes, Placement, greedy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WIDTH, PROPOSALS = 12, 4
CLOSER, FARTHER = 0.3, 0.95
"""Of the way from the peak to the best top: the most ambitious limit, which comes first, and the least ambitious."""
_LARGEST = 1 << 60


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
        if best.optimal or best.top >= _LARGEST:
            return best
        problem = Problem(sizes, live)
        random = np.random.default_rng(0)
        share = CLOSER
        while not best.optimal:
            if self.is_over():
                self.stopped = True
                break
            limit = max(peak, min(best.top - 1, int(peak + (best.top - peak) * share)))
            found = beam(problem, limit, Weights.drawn(random), self.is_over)
            if found is None:
                share = min(FARTHER, share + 0.04)
                continue
            share = max(CLOSER, share * 0.9)
            spans = {i: (int(low), int(low) + sizes[i]) for i, low in zip(problem.indices, found, strict=True)}
            best = Placement(spans, max(high for _, high in spans.values()) == peak)
        return best

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._deadline

    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self._deadline - self._clock())


class Problem:
    """The buffers as arrays. Positions count the starts of lifetimes: between two of them nothing begins."""

    def __init__(self, sizes: Mapping[int, int], live: Lifetimes) -> None:
        self.indices = list(sizes)
        spans = [live.span(i) for i in self.indices]
        starts = np.unique(np.array([start for start, _ in spans]))
        self.sizes = np.array([sizes[i] for i in self.indices], dtype=np.int64)
        self.start: Ints = np.searchsorted(starts, [s for s, _ in spans]).astype(np.int64)
        self.end: Ints = np.searchsorted(starts, [e for _, e in spans]).astype(np.int64)
        self.length = self.end - self.start
        self.positions = len(starts)
        self.area = self.sizes * self.length.astype(np.float64)
        # a maximum over a range is that of two ranges whose length is a power of two, one from each end
        self.level: Ints = np.array([int(n).bit_length() - 1 for n in self.length], dtype=np.int64)
        self.second = self.end - (1 << self.level)
        changes = np.zeros(self.positions + 1, dtype=np.int64)
        np.add.at(changes, self.start, self.sizes)
        np.add.at(changes, self.end, -self.sizes)
        self.live_units: Ints = np.cumsum(changes)[:-1]
        self.names = np.random.default_rng(1).integers(1, 1 << 62, len(self.indices))  # of buffers, in keys of states

    def highest(self, values: Ints) -> Ints:
        """The maximum over the life of each buffer: `values[state, position]` to `[state, buffer]`."""
        levels = [values]
        for level in range(int(self.level.max())):
            half, below = 1 << level, levels[-1]
            wider = below.copy()
            wider[:, :-half] = np.maximum(below[:, :-half], below[:, half:])
            levels.append(wider)
        table = np.stack(levels)
        return np.maximum(table[self.level, :, self.start], table[self.level, :, self.second]).T


@dataclass(frozen=True)
class Weights:
    """What a state proposes first: a low place (weight 1), a long life, little room, a large area. Then what states are
    compared by: the power of the bounds, the area that is placed, the score of the last proposal."""

    long: float
    tight: float
    large: float
    power: int
    progress: float
    proposal: float

    @staticmethod
    def drawn(random: np.random.Generator) -> Weights:
        """Random weights, in the ranges that did well on `benchmarks/planner.py`."""
        sometimes = random.random(3) < (0.5, 0.33, 0.5)
        return Weights(
            long=10 ** random.uniform(-1.8, -0.5),
            tight=10 ** random.uniform(-1.5, 0) * sometimes[0],
            large=10 ** random.uniform(-2.5, -1.5) * sometimes[1],
            power=int(random.choice([1, 4, 16, 32])),
            progress=10 ** random.uniform(-1, 1) * sometimes[2],
            proposal=10 ** random.uniform(-0.5, 1),
        )


def beam(problem: Problem, limit: int, weights: Weights, is_over: Callable[[], bool]) -> Ints | None:
    """The lows of a placement whose top is at most `limit`; None if the search ends without one, or time is up."""
    p, count = problem, len(problem.indices)
    skyline: Ints = np.zeros((1, p.positions), dtype=np.int64)
    missing = p.live_units[None, :]
    waits = np.ones((1, count), dtype=bool)
    lows: Ints = np.zeros((1, count), dtype=np.int64)
    keys: Ints = np.zeros(1, dtype=np.int64)
    area: Floats = np.zeros(1)
    whole = float(p.area.sum()) or 1.0
    own = weights.long * p.length / p.positions + weights.large * p.area / (float(p.area.max()) or 1.0)
    position = np.arange(p.positions)
    proposals = min(PROPOSALS, count)
    for _ in range(count):
        if is_over():
            return None
        low = p.highest(skyline)
        bound = low + p.highest(missing)
        score = (low - weights.tight * bound) / limit - own
        score[~waits | (bound > limit)] = np.inf
        chosen = np.argpartition(score, proposals - 1, axis=1)[:, :proposals]
        state, buffer = np.repeat(np.arange(len(skyline)), proposals), chosen.ravel()
        possible = np.isfinite(score[state, buffer])
        state, buffer = state[possible], buffer[possible]
        # one placement that is reached in two orders is one state; keys are sums modulo 2**64
        new_keys = keys[state] + p.names[buffer] * (low[state, buffer] + 1)
        new_keys, first = np.unique(new_keys, return_index=True)
        state, buffer = state[first], buffer[first]
        if not len(state):
            return None
        at = low[state, buffer]
        lives = (position >= p.start[buffer][:, None]) & (position < p.end[buffer][:, None])
        new_skyline = np.where(lives, (at + p.sizes[buffer])[:, None], skyline[state])
        new_missing = missing[state] - lives * p.sizes[buffer][:, None]
        new_area = area[state] + p.area[buffer]
        quality: Any = (((new_skyline + new_missing) / limit) ** weights.power).mean(axis=1)
        quality = quality - weights.progress * new_area / whole + weights.proposal * score[state, buffer]
        kept = np.argsort(quality, kind="stable")[:WIDTH]
        state, buffer, at = state[kept], buffer[kept], at[kept]
        skyline, missing, area, keys = new_skyline[kept], new_missing[kept], new_area[kept], new_keys[kept]
        waits, lows = waits[state], lows[state]
        rows = np.arange(len(kept))
        waits[rows, buffer] = False
        lows[rows, buffer] = at
    return lows[np.argmin((lows + p.sizes).max(axis=1))]
