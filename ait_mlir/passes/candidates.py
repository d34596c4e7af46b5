"""Every way to run an op on a target, with an estimate, and those that are worth timing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ait_mlir.dims import Dim, Scope
from ait_mlir.lowering.choices import Way, steps_of
from ait_mlir.lowering.fragments import fragments, is_usual_cut
from ait_mlir.lowering.kernels import Kernel, Target, kernels_for
from ait_mlir.passes.tasks import Point, Task

SLOWEST = 3.0
"""A candidate whose estimate is more times the best one is not timed."""
CONFIGS, CONFIGS_CUT = 6, 3
"""Configurations of a kernel to time at a point, when it runs the whole op, and when the op is cut."""
MOST = 40
"""Candidates of one op to time, at most."""
MAX_POINTS = 6
STRATEGIES = ("hints", "min", "max")


@dataclass(frozen=True)
class Candidate:
    """One way to run an op, and its estimate in seconds."""

    way: Way
    estimate: float
    only_timed: bool = False


def candidates(op: Operation, target: Target, configs: int = 1, configs_cut: int = 1) -> Iterator[Candidate]:
    """The ways to run `op`, with the first so many configurations of each kernel."""
    for fragment in fragments(op, target):
        ways: list[tuple[tuple[tuple[Kernel, dict[str, int]], ...], float]] = [((), 0.0)]
        count = configs if is_usual_cut(op, fragment.cut) else configs_cut
        for part in fragment.ops:
            options = [
                (k, c, k.heuristic(part, target) * (1 + 0.01 * i))
                for k in kernels_for(part, target)
                for i, c in enumerate(k.configs(part, target)[:count])
            ]
            ways = [((*done, (k, c)), cost + more) for done, cost in ways for k, c, more in options]
        for kernels, estimate in ways:
            only_timed = any(k.only_timed for k, _ in kernels)
            yield Candidate(Way.of(fragment.cut, [(k.provider, c) for k, c in kernels]), estimate, only_timed)


def best_by_estimate(found: Sequence[Candidate]) -> Candidate:
    """The candidate with the smallest estimate; of equals the one with fewer launches, then the first.

    One that is to be timed is taken only where there is no other.
    """
    return min(found, key=lambda c: (c.only_timed, c.estimate, len(c.way.steps)))


def worth_timing(task: Task, points: Sequence[Point], target: Target) -> list[Candidate]:
    """The candidates to time, best estimate first: those not far from the best at one of the points at least.

    Estimates are taken at each point, so that a tile for few rows and one for many are both among them.
    """
    best: dict[Way, float] = {}
    for point in points:
        found = sorted(candidates(task.at(point), target, CONFIGS, CONFIGS_CUT), key=lambda c: c.estimate)
        for c in found:
            ratio = c.estimate / max(found[0].estimate, 1e-9)
            if ratio <= SLOWEST:
                best[c.way] = min(ratio, best.get(c.way, ratio))
    ordered = sorted(best.items(), key=lambda item: item[1])
    fitting = (Candidate(way, ratio) for way, ratio in ordered if _fits(task.op, way, target))
    return list(itertools.islice(fitting, MOST))


def _fits(op: Operation, way: Way, target: Target) -> bool:
    """Whether a way that a point has can be taken for all values of the dims."""
    try:
        steps = steps_of(op, way, target)
    except ValueError:
        return False
    return all(s.kernel.config_problem(s.op, s.config, target) is None for s in steps)


def points_of(scope: Scope, strategies: Sequence[str] = ("hints",)) -> list[Point]:
    """Where to measure: all combinations of the values of each dim, at most `MAX_POINTS`, evenly taken.

    The values are its `hints` (its least and largest value where it has none), its least value (`min`), its largest
    (`max`), or several of these.
    """
    choices = [_values(d, strategies) for d in scope.dims]
    points = sorted(itertools.product(*choices))
    if len(points) <= MAX_POINTS:
        return points
    return [points[round(i * (len(points) - 1) / (MAX_POINTS - 1))] for i in range(MAX_POINTS)]


def _values(dim: Dim, strategies: Sequence[str]) -> list[int]:
    low = max(1, dim.lo) if dim.hi >= 1 else dim.lo
    values: set[int] = set()
    if "hints" in strategies:
        values.update(dim.hints or (low, dim.hi))
    if "min" in strategies:
        values.add(low)
    if "max" in strategies:
        values.add(dim.hi)
    return sorted(values)
