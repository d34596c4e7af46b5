"""From times at points to a choice: one way for all, or several over ranges of sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ait_mlir.dims import Expr, const, from_terms
from ait_mlir.lowering.choices import Choice, Way

TIE = 0.0075
"""Ways whose times differ by less, as a ratio, are equal."""
MOST_NOISE = 0.02
"""Times that differ by more are never taken for equal, however much the samples differ."""
SWITCH = 0.02
"""What another way has to gain over a range, as a ratio at one point, to be worth a branch and its code."""


@dataclass(frozen=True)
class Times:
    """The median of the samples in seconds, and its standard error as a ratio."""

    seconds: float
    spread: float


@dataclass(frozen=True)
class Measured:
    """The times of ways at one place of the axis; a way that cannot run there is missing."""

    at: int
    times: Mapping[Way, Times]

    def cost(self, way: Way) -> float:
        """The logarithm of the way's time over the best one, 0 within the noise; infinite where it cannot run."""
        if way not in self.times:
            return math.inf
        best = min(self.times.values(), key=lambda t: t.seconds)
        mine = self.times[way]
        noise = max(TIE, min(MOST_NOISE, 3 * max(mine.spread, best.spread)))
        ratio = mine.seconds / best.seconds
        return 0.0 if ratio <= 1 + noise else math.log(ratio)


def axis_of(dims: Sequence[Expr]) -> Expr:
    """What a run's size is measured by: the number of elements of a result, without its constant factor."""
    total = const(1)
    for dim in dims:
        total = total * dim
    terms = total.terms()
    divisor = math.gcd(*(c for c, _ in terms)) or 1
    return from_terms([(c // divisor, atoms) for c, atoms in terms])


def choose(measured: Sequence[Measured], order: Sequence[Way], axis: Expr, switch: float = SWITCH) -> Choice | None:
    """The ways over the axis that lose least in all, a switch costing `switch`; None where no way can run everywhere.

    Of ways that are equal within the noise the one that comes first in `order` is taken, and the neighbour's before
    that. A range ends in the geometric middle of the two places that it lies between.
    """
    places = sorted(measured, key=lambda m: m.at)
    ways = [w for w in order if any(w in m.times for m in places)]
    if not places or not ways:
        return None
    costs = [[m.cost(w) for w in ways] for m in places]
    total, back = costs[0], list[list[int]]()
    for row in costs[1:]:
        cheapest = min(range(len(ways)), key=lambda i: (total[i], i))
        moves = [i if total[i] <= total[cheapest] + switch else cheapest for i in range(len(ways))]
        total = [total[m] + (0.0 if m == i else switch) + row[i] for i, m in enumerate(moves)]
        back.append(moves)
    at = min(range(len(ways)), key=lambda i: (total[i], i))
    if math.isinf(total[at]):
        return None
    picks = [at]
    for moves in reversed(back):
        picks.append(moves[picks[-1]])
    picks.reverse()
    chosen, upto = [ways[picks[0]]], list[int]()
    for i in range(1, len(places)):
        if picks[i] != picks[i - 1]:
            upto.append(math.isqrt(places[i - 1].at * places[i].at))
            chosen.append(ways[picks[i]])
    return Choice(tuple(chosen), tuple(upto), axis if upto else None)
