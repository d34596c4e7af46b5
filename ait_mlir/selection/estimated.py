"""The choice by estimate for an op with dynamic dims: several kernels over ranges of sizes, if a table is fitted.

One kernel is the fastest for a product of one row, another kernel for a product of 4,096 rows. Estimates fitted to the
card become a choice in the same way as measured times (ranges.py), but a branch must gain more, because estimates are
less accurate.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from xdsl.ir import Operation

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.choices import Choice, packs
from ait_mlir.lowering.estimates import table_for
from ait_mlir.lowering.fragments import Fragment, estimate, offers, steps_of
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import points_between
from ait_mlir.selection.candidates import fits
from ait_mlir.selection.ranges import Times, axis_of, choose
from ait_mlir.selection.tasks import Task

BEST = 2
"""Fragments of each point to compare at all points."""
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
    ways: dict[Fragment, None] = {}
    for op in ops.values():
        offered = sorted((f for f in offers(op, target, BEST) if not f.only_timed), key=_order)
        ways |= dict.fromkeys(islice((f for f in offered if f in ways or fits(task.op, f, target)), BEST))
    if not ways or any(packs(step) for way in ways for step in steps_of(task.op, way, target)):
        return None
    axis = axis_of(tensor_type(task.op.results[0]).dims)
    rows = [
        (axis.evaluate(task.environment(point)), {w: _times(op, w, target) for w in ways}) for point, op in ops.items()
    ]
    return choose(rows, list(ways), axis, BRANCH)


def _times(op: Operation, way: Fragment, target: Target) -> Times | None:
    """None for a fragment that is not offered at these sizes."""
    try:
        return Times(estimate(op, way, target), 0.0)
    except ValueError:
        return None


def _order(f: Fragment) -> tuple[float, int]:
    return f.seconds, len(f.kernels)
