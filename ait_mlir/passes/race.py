"""Timing several candidates fairly: in turns, many times, and those that are behind not to the end."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from ait_mlir.passes.ranges import Times

ROUNDS = ((4, 1.5), (12, 1.1), (32, 1.0))
"""After so many samples in all, candidates slower than the best by this ratio run no further."""


def race(sample: Callable[[int], float], count: int) -> list[Times]:
    """The times of `count` candidates; `sample(i)` is the seconds of one run of candidate i.

    Candidates take turns, so that a card that slows down slows all of them. The first sample of each is thrown away.
    """
    samples: list[list[float]] = [[] for _ in range(count)]
    running = list(range(count))
    for i in running:
        sample(i)
    done = 0
    for rounds, ratio in ROUNDS:
        if len(running) < 2 and done:
            break
        for _ in range(rounds - done):
            for i in running:
                samples[i].append(sample(i))
        done = rounds
        best = min(statistics.median(samples[i]) for i in running)
        running = [i for i in running if statistics.median(samples[i]) <= best * ratio]
    return [summary(values) for values in samples]


def summary(samples: list[float]) -> Times:
    """The median, and how far from it half of the samples lie, as a ratio."""
    middle = statistics.median(samples)
    distance = statistics.median(abs(s - middle) for s in samples)
    return Times(middle, distance / middle if middle > 0 else 0.0)
