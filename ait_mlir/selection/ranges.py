"""Turns times at points into a choice: one candidate for all sizes, or several over ranges of sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Operation

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, from_terms
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.choices import Choice

TIE = 0.0075
"""Candidates whose times differ by less, as a ratio, count as equal."""
MOST_NOISE = 0.02
"""Times that differ by more never count as equal, however much the samples vary."""
SWITCH = 0.01
"""The gain over a range, as a ratio at one point, that justifies a branch and its code."""


@dataclass(frozen=True)
class Times:
    """The median of the samples in seconds, and its standard error as a ratio.

    `source` is the digest of the timed code, if known.
    """

    seconds: float
    spread: float
    source: str = ""


TimesAtPoint = Mapping[Candidate, Times | None]
"""The times of candidates at one point. None: the candidate cannot run there; no entry: it was not timed."""


def cost_of(candidate: Candidate, row: TimesAtPoint) -> float | None:
    """The logarithm of the candidate's time over the best time: 0 within the noise, infinite if it cannot run, None if
    it was not timed."""
    if candidate not in row:
        return None
    mine = row[candidate]
    if mine is None:
        return math.inf
    best = min((t for t in row.values() if t is not None), key=lambda t: t.seconds)
    noise = max(TIE, min(MOST_NOISE, 3 * max(mine.spread, best.spread)))
    ratio = mine.seconds / best.seconds
    return 0.0 if ratio <= 1 + noise else math.log(ratio)


def costs_of(candidate: Candidate, places: Sequence[tuple[int, Sequence[TimesAtPoint]]]) -> list[float]:
    """The cost of a candidate at each point: the mean of its measured costs. Between two measured points it is
    interpolated; outside of them it is infinite."""
    found: list[float | None] = []
    for _, rows in places:
        known = [cost for row in rows if (cost := cost_of(candidate, row)) is not None]
        found.append(sum(known) / len(known) if known else None)
    sizes = [math.log(max(at, 1)) for at, _ in places]
    costs: list[float] = []
    for i, cost in enumerate(found):
        before = next((j for j in range(i, -1, -1) if found[j] is not None), None)
        behind = next((j for j in range(i, len(found)) if found[j] is not None), None)
        if cost is None and before is not None and behind is not None:
            low, high = cast(float, found[before]), cast(float, found[behind])
            share = (sizes[i] - sizes[before]) / (sizes[behind] - sizes[before])
            cost = math.inf if math.isinf(low + high) else low + share * (high - low)
        costs.append(math.inf if cost is None else cost)
    return costs


def axis_of(dims: Sequence[Expr]) -> Expr:
    """The measure of a run's size: the number of elements of a result, without its constant factor."""
    total = const(1)
    for dim in dims:
        total = total * dim
    terms = total.terms()
    divisor = math.gcd(*(c for c, _ in terms)) or 1
    return from_terms([(c // divisor, atoms) for c, atoms in terms])


def axis_for(op: Operation) -> Expr:
    """The measure of the size of a run of an op: of its first result or, if the size of the result is known, of the
    first operand that has a dynamic size."""
    axes = [axis_of(tensor_type(value).dims) for value in (*op.results[:1], *op.operands)]
    return next((axis for axis in axes if axis.as_int() is None), axes[0])


def choose(
    measured: Sequence[tuple[int, TimesAtPoint]], order: Sequence[Candidate], axis: Expr, switch: float = SWITCH
) -> Choice | None:
    """The candidates over the axis with the smallest total loss; each switch costs `switch`. None if they do not cover
    the axis.

    `measured` are places on the axis with rows of times there. Among candidates that are equal within the noise, the
    neighbour's candidate comes first, then the order of `order`. A range ends at the geometric mean of the two points
    around the switch.
    """
    by_place: dict[int, list[TimesAtPoint]] = {}
    for place, row in measured:
        by_place.setdefault(place, []).append(row)
    places = sorted(by_place.items())
    candidates = [w for w in order if any(w in row for _, row in measured)]
    if not places or not candidates:
        return None
    columns = [costs_of(w, places) for w in candidates]
    total, back = [column[0] for column in columns], list[list[int]]()
    for row in list(zip(*columns, strict=True))[1:]:
        cheapest = min(range(len(candidates)), key=lambda i: (total[i], i))
        moves = [i if total[i] <= total[cheapest] + switch else cheapest for i in range(len(candidates))]
        total = [total[m] + (0.0 if m == i else switch) + row[i] for i, m in enumerate(moves)]
        back.append(moves)
    at = min(range(len(candidates)), key=lambda i: (total[i], i))
    if math.isinf(total[at]):
        return None
    picks = [at]
    for moves in reversed(back):
        picks.append(moves[picks[-1]])
    picks.reverse()
    chosen, upto = [candidates[picks[0]]], list[int]()
    for i in range(1, len(places)):
        if picks[i] != picks[i - 1]:
            upto.append(math.isqrt(places[i - 1][0] * places[i][0]))
            chosen.append(candidates[picks[i]])
    return Choice(tuple(chosen), tuple(upto), axis if upto else None)
