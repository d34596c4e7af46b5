"""Times several candidates fairly: takes many samples in turns and stops slower candidates early."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from ait_mlir.selection.ranges import Times

ROUNDS = ((3, 1.2), (6, 1.05), (12, 1.02), (24, 1.0))
"""After this many samples, a candidate stops if its fast quarter is slower than the best by this ratio and by more than
the noise."""
PRECISE, ENOUGH = 0.0025, 6
"""The race ends early, after `ENOUGH` samples, when all remaining candidates have a smaller standard error than
`PRECISE`: noise cannot hide a difference that counts (ranges.TIE)."""

ERROR = 1.86
"""For normally distributed samples, the standard error of the median is this constant times their median distance to
the median, over the square root of their number."""


SHORT_ROUNDS = ROUNDS[:2]
"""For a limited budget: enough samples to see differences of 5 %."""


def race(sample: Callable[[int], float], count: int, rounds: Sequence[tuple[int, float]] = ROUNDS) -> list[Times]:
    """The times of `count` candidates; `sample(i)` is the seconds of one run of candidate i.

    Candidates take turns, so that a card that slows down slows all of them. The first sample of each is thrown away.
    """
    samples: list[list[float]] = [[] for _ in range(count)]
    running = list(range(count))
    for i in running:
        sample(i)
    done = 0
    for wanted, ratio in rounds:
        for _ in range(wanted - done):
            for i in running:
                samples[i].append(sample(i))
        done = wanted
        spread = {i: summary(samples[i]).spread for i in running}
        quick = {i: sorted(samples[i])[len(samples[i]) // 4] for i in running}
        best = min(running, key=lambda i: quick[i])
        running = [i for i in running if quick[i] <= quick[best] * (ratio + 3 * max(spread[i], spread[best]))]
        if done >= ENOUGH and (len(running) < 2 or max(spread[i] for i in running) <= PRECISE):
            break
    return [summary(values) for values in samples]


def summary(samples: list[float]) -> Times:
    """The median and its standard error, derived from the median distance of the samples to the median."""
    middle = statistics.median(samples)
    distance = statistics.median(abs(s - middle) for s in samples)
    return Times(middle, ERROR * distance / math.sqrt(len(samples)) / middle if middle > 0 else 0.0)
