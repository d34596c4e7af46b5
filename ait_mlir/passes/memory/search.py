"""A search for a smaller arena, for a limited time, with the best placement that was found.

Greedy placement comes first. If it is above the peak of live units, descents follow until the time is up or the peak is
reached, each below a limit between the peak and the best top so far.

A descent is a depth-first search of few steps: it puts one buffer after another as low as it can lie, from the lowest
place to the highest one, as any placement can be made. What it has decided raises the *floor* of each position: the
highest end of a placed buffer, and then the lowest place of all buffers that are still to come there, until nothing
changes (the section inference of MiniMalloc, doi 10.1145/3623278.3624752). Where floor and missing sizes are above the
limit, the descent goes back. A buffer is tried only if no other one fits below it; which of those comes first is a
weighted sum of what such a buffer looks like. Weights are drawn at random, and later around those of the descents that
placed most; a descent may follow the order in which such a one placed its buffers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ait_mlir.passes.memory.placement import Lifetimes, Placement, greedy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CHOICES, SPARE_STEPS = 4, 250
"""The buffers that a step chooses from, and the steps beyond one a buffer that a descent may take."""
CLOSER, FARTHER = 0.3, 0.95
"""Of the way from the peak to the best top: the most ambitious limit, which comes first, and the least ambitious."""
REMEMBERED = 8
"""The descents that later ones resemble."""
_GONE = 1 << 60  # above every place


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
        if best.optimal or best.top >= _GONE // 2:
            return best
        problem = Problem(sizes, live)
        random = np.random.default_rng(0)
        tried: list[Descent] = []
        share = CLOSER
        while not best.optimal:
            if self.is_over():
                self.stopped = True
                break
            limit = max(peak, min(best.top - 1, int(peak + (best.top - peak) * share)))
            wishes = wishes_like(tried, random)
            made = descend(problem, limit, wishes.scored(problem, random), self.is_over)
            depth = float(len(made.order))
            if made.lows is None:
                share = min(FARTHER, share + 0.02)
            else:
                share = max(CLOSER, share * 0.9)
                spans = {i: (int(low), int(low) + sizes[i]) for i, low in zip(problem.indices, made.lows, strict=True)}
                best = Placement(spans, max(high for _, high in spans.values()) == peak)
                tried = [replace(t, depth=0.9 * t.depth) for t in tried]  # they had a higher limit
            tried.append(Descent(depth, wishes, made.order))
            tried = sorted(tried, key=lambda t: -t.depth)[:REMEMBERED]
        return best

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._deadline

    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self._deadline - self._clock())


class Problem:
    """The buffers as arrays. Positions count the starts of lifetimes: between two of them nothing begins.

    Pairs of a buffer and a position of its life stand in a row, by buffer (`position`, from `by_buffer[buffer]` on) and
    by position (`buffer`, from `by_position[position]` on).
    """

    def __init__(self, sizes: Mapping[int, int], live: Lifetimes) -> None:
        self.indices = list(sizes)
        spans = [live.span(i) for i in self.indices]
        starts = np.unique(np.array([start for start, _ in spans]))
        self.sizes: Ints = np.array([sizes[i] for i in self.indices], dtype=np.int64)
        self.start: Ints = np.searchsorted(starts, [s for s, _ in spans]).astype(np.int64)
        self.end: Ints = np.searchsorted(starts, [e for _, e in spans]).astype(np.int64)
        self.length = self.end - self.start
        self.by_buffer: Ints = np.cumsum(self.length) - self.length
        owners: Ints = np.repeat(np.arange(len(self.indices)), self.length)
        self.position: Ints = np.arange(len(owners)) - (self.by_buffer - self.start)[owners]
        self.buffer: Ints = owners[np.argsort(self.position, kind="stable")]
        counts = np.bincount(self.position, minlength=len(starts))
        self.by_position: Ints = np.cumsum(counts) - counts
        self.missing: Ints = np.add.reduceat(self.sizes[self.buffer], self.by_position)
        area = self.sizes * self.length.astype(np.float64)
        self.looks: Floats = np.stack(
            [
                self.length / len(starts),
                area / area.max(),
                self.highest(self.missing) / self.missing.max(),
                self.sizes / self.sizes.max(),
            ]
        )
        self.neighbours = [
            np.flatnonzero((self.start < e) & (self.end > s)) for s, e in zip(self.start, self.end, strict=True)
        ]

    def highest(self, values: Ints) -> Ints:
        """The maximum of `values[position]` over the life of each buffer."""
        return np.maximum.reduceat(values[self.position], self.by_buffer)

    def raised(self, floor: Ints, gone: Ints) -> tuple[Ints, Ints]:
        """The lowest place of each buffer, beyond every place for those that are gone, and the floors that follow."""
        while True:
            lowest = self.highest(floor) + gone
            above = np.minimum.reduceat(lowest[self.buffer], self.by_position)
            above = np.where(above >= _GONE, floor, above)
            if np.array_equal(above, floor):
                return lowest, floor
            floor = above


@dataclass(frozen=True)
class Scores:
    """What decides the order of proposals: a number for each buffer, and weights of what its place looks like."""

    of_buffer: Floats
    low: float
    tight: float
    waste: float

    def of(self, p: Problem, limit: int, buffers: Ints, lowest: Ints, floor: Ints, missing: Ints) -> Floats:
        """The scores of buffers; the lowest comes first."""
        at = lowest[buffers]
        score = self.of_buffer[buffers] + self.low / limit * at
        if self.tight:
            score = score - self.tight / limit * p.highest(floor + missing)[buffers]
        if self.waste:
            below = np.add.reduceat(floor[p.position], p.by_buffer)[buffers]
            score = score + 10 * self.waste / limit / len(floor) * (at * p.length[buffers] - below)
        return score


@dataclass(frozen=True)
class Wishes:
    """Weights: of a long life, a large area, a crowded life and a large size (`looks`), of a low place, of little room
    above it, of room wasted below it, of chance; and of the place in an `order` of buffers."""

    looks: Floats
    low: float
    tight: float
    waste: float
    chance: float
    follow: float = 0.0
    order: tuple[int, ...] = ()

    @staticmethod
    def drawn(random: np.random.Generator) -> Wishes:
        """Random weights, in the ranges that did well on `benchmarks/planner.py`."""
        return Wishes(
            looks=10 ** random.uniform(-2, 0.5, 4) * (random.random(4) < 0.7),
            low=10 ** random.uniform(-1, 1),
            tight=10 ** random.uniform(-1.5, 0.3) * (random.random() < 0.6),
            waste=10 ** random.uniform(-1.5, 1) * (random.random() < 0.7),
            chance=10 ** random.uniform(-3, -1),
        )

    def varied(self, random: np.random.Generator) -> Wishes:
        """Weights near these."""
        by = 10 ** random.normal(0, 0.25, 8)
        looks = self.looks * by[4:]
        if random.random() < 0.2:
            one = random.integers(4)
            looks[one] = Wishes.drawn(random).looks[one]
        return Wishes(looks, self.low * by[0], self.tight * by[1], self.waste * by[2], self.chance * by[3])

    def scored(self, p: Problem, random: np.random.Generator) -> Scores:
        """With what does not change while buffers are placed summed up."""
        count = len(p.indices)
        own = random.random(count) * self.chance - self.looks @ p.looks
        if self.order:
            rank = np.ones(count)
            rank[list(self.order)] = np.arange(len(self.order)) / count
            own = own + self.follow * rank
        return Scores(own, self.low, self.tight, self.waste)


@dataclass(frozen=True)
class Descent:
    """How many buffers it placed, what it wished, and the order in which it placed them."""

    depth: float
    wishes: Wishes
    order: tuple[int, ...]


def wishes_like(tried: list[Descent], random: np.random.Generator) -> Wishes:
    """New wishes, or ones like those of an earlier descent, which come first by how far they came."""
    if not tried or random.random() < 0.4:
        return Wishes.drawn(random)
    model = tried[int(random.integers(len(tried), size=2).min())]
    wishes = model.wishes.varied(random)
    if random.random() < 0.5:
        return wishes
    return replace(wishes, follow=10 ** random.uniform(-0.5, 1.5), order=model.order)


@dataclass(frozen=True)
class Made:
    """The buffers placed at the deepest point of a descent, in order, and the lows of all if all are placed."""

    order: tuple[int, ...]
    lows: Ints | None


@dataclass
class _Step:
    """A point of a descent: what holds there, the buffers to try with their lows, and which one is tried now."""

    floor: Ints
    missing: Ints
    gone: Ints
    buffers: Ints
    lows: Ints
    now: int = -1
    closed: bool = False
    """Whether another choice cannot help."""

    @property
    def placed(self) -> tuple[int, int]:
        """The buffer that is tried, and its low."""
        return int(self.buffers[self.now]), int(self.lows[self.now])

    def is_exhausted(self) -> bool:
        return self.closed or self.now + 1 == len(self.buffers)


def descend(p: Problem, limit: int, scores: Scores, is_over: Callable[[], bool]) -> Made:
    """A placement whose top is at most `limit`, or how far the descent came in its steps or until the time was up."""
    count = len(p.indices)

    def step(lowest: Ints, floor: Ints, missing: Ints, gone: Ints) -> _Step:
        fits_below = (lowest + p.sizes).min()
        buffers = np.flatnonzero(lowest < fits_below)
        score = scores.of(p, limit, buffers, lowest, floor, missing)
        first = buffers[np.argsort(score, kind="stable")[:CHOICES]]
        return _Step(floor, missing, gone, first, lowest[first])

    nothing = np.zeros(count, dtype=np.int64)
    lowest, floor = p.raised(np.zeros_like(p.missing), nothing)
    stack = [step(lowest, floor, p.missing, nothing)]
    path: list[int] = []  # what the steps below the top of the stack placed
    order: tuple[int, ...] = ()
    for _ in range(count + SPARE_STEPS):
        while stack and stack[-1].is_exhausted():
            if len(path) > len(order):
                order = tuple(path)
            stack.pop()
            del path[-1:]
        if not stack or is_over():
            break
        top = stack[-1]
        top.now += 1
        buffer, low = top.placed
        life = slice(p.start[buffer], p.end[buffer])
        floor, missing, gone = top.floor.copy(), top.missing.copy(), top.gone.copy()
        floor[life] = low + p.sizes[buffer]
        missing[life] -= p.sizes[buffer]
        gone[buffer] = _GONE
        if (floor[life] + missing[life]).max() > limit:
            continue
        if len(stack) == count:
            lows = np.zeros(count, dtype=np.int64)
            for s in stack:
                placed, at = s.placed
                lows[placed] = at
            return Made((*path, buffer), lows)
        lowest, floor = p.raised(floor, gone)
        if (floor + missing).max() > limit:
            continue
        top.closed = bool(gone[p.neighbours[buffer]].all())  # nothing else is live beside it
        stack.append(step(lowest, floor, missing, gone))
        path.append(buffer)
    return Made(max(order, tuple(path), key=len), None)
