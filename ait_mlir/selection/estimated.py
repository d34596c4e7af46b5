"""The choice by estimate for an op with dynamic dims: several kernels over ranges of sizes, if a table is fitted.

One kernel is the fastest for a product of one row, another kernel for a product of 4,096 rows. Estimates fitted to the
card become a choice in the same way as measured times (ranges.py), but a branch must gain more, because estimates are
less accurate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import islice

from xdsl.ir import Operation

from ait_mlir.lowering.candidates import Candidate, candidates_of, estimate, steps_of
from ait_mlir.lowering.choices import Choice, packs
from ait_mlir.lowering.estimates import table_for
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point, points_between
from ait_mlir.selection.ranges import Times, axis_for, choose
from ait_mlir.selection.shortlist import fits
from ait_mlir.selection.tasks import Task

BEST = 2
"""Candidates of each point to compare at all points."""
BRANCH = 0.1
"""The gain over a range, as a ratio at one point, that justifies a branch."""


def choice_by_estimate(task: Task, bound: Collection[str], target: Target) -> Choice | None:
    """The choice by estimate, over ranges of sizes; None if there can be no ranges or no table of estimates fits.

    There are no ranges without dynamic dims, or with a dim in `bound`: an op computes its value, which the kernel may
    have to read from device memory.
    """
    names = {dim.name for dim in task.scope.dims}
    if not names or names & set(bound) or table_for(target.arch) is None:
        return None
    points = points_between(task.scope)
    ops = {point: task.at(point) for point in points}
    candidates: dict[Candidate, None] = {}
    for op in ops.values():
        found = sorted((f for f in candidates_of(op, target, BEST) if not f.only_timed), key=_order)
        candidates |= dict.fromkeys(islice((f for f in found if f in candidates or fits(task.op, f, target)), BEST))
    if not candidates or any(packs(step) for candidate in candidates for step in steps_of(task.op, candidate, target)):
        return None
    axis = axis_for(task.op)
    times = {candidate: _times(task, ops, candidate, target) for candidate in candidates}
    rows = [(axis.evaluate(task.environment(point)), {w: times[w][point] for w in candidates}) for point in points]
    return choose(rows, list(candidates), axis, BRANCH)


def _times(
    task: Task, ops: Mapping[Point, Operation], candidate: Candidate, target: Target
) -> dict[Point, Times | None]:
    """The estimates of a candidate that is valid for all sizes, at points of growing size.

    A kernel for many elements may not be offered for an op of few elements, as a block for a row of four; below the
    largest size at which it is offered, the estimate is then that of the op with dynamic sizes, or if it is not offered
    with few elements as hints either, that of the next larger size. None at larger sizes.
    """
    found: dict[Point, Times | None] = {}
    larger: Times | None = None
    for point, op in reversed(list(ops.items())):
        try:
            larger = Times(estimate(op, candidate, target), 0.0)
        except ValueError:
            if larger is not None:
                with suppress(ValueError):
                    larger = Times(estimate(task.hinted(point), candidate, target), 0.0)
        found[point] = larger
    return found


def _order(f: Candidate) -> tuple[float, int]:
    return f.seconds, len(f.kernels)
