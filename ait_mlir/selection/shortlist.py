"""The candidates that are worth timing for a task, and the points to time them at."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

from xdsl.ir import Operation

from ait_mlir.lowering.build import headers_of
from ait_mlir.lowering.candidates import Candidate, candidates_of, code_of, steps_of
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point
from ait_mlir.selection.tasks import Task

SLOWEST = 3.0
"""Candidates whose estimate exceeds the best one by more than this factor are not timed."""
CONFIGS, CONFIGS_CUT = 6, 3
"""Configurations of a kernel to time at a point, when it runs the whole op, and when the op is cut."""
MOST = 40
"""Candidates of one op to time, at most."""


def best_by_estimate(found: Sequence[Candidate]) -> Candidate:
    """The candidate with the smallest estimate; among equal estimates, the fewest launches, then the first in order.

    A candidate that is `only_timed` is taken only if there is no other.
    """
    return min(found, key=lambda f: (f.only_timed, f.seconds, len(f.kernels)))


def worth_timing(task: Task, points: Sequence[Point], target: Target) -> list[Candidate]:
    """The candidates to time, best estimate first: all that are close to the best estimate at some point.

    Each point has its own estimates, so both a tile for few rows and a tile for many rows are included.
    """
    best: dict[Candidate, float] = {}
    for point in points:
        found = sorted(candidates_of(task.at(point), target, CONFIGS, CONFIGS_CUT), key=lambda f: f.seconds)
        for f in found:
            ratio = f.seconds / max(found[0].seconds, 1e-9)
            if ratio <= SLOWEST:
                best[f] = min(ratio, best.get(f, ratio))
    ordered = sorted(best, key=lambda f: best[f])
    found = (f for f in ordered if fits(task.op, f, target) and _suits(task.op, f, target))
    return list(itertools.islice(found, MOST))


def code_digest(task: Task, target: Target) -> str:
    """A digest of the candidates of a task and of the code of their kernels, with headers.

    For a kernel with several configurations, the digest contains the code of the first one.
    """
    texts: dict[str, None] = {}
    seen: dict[tuple[str | None, tuple[str, ...]], bool] = {}
    for candidate in candidates_of(task.op, target, CONFIGS, CONFIGS_CUT):
        kernels = candidate.cut, tuple(provider for provider, _ in candidate.kernels)
        is_new = kernels not in seen
        if is_new:
            seen[kernels] = _suits(task.op, candidate, target)
        if not seen[kernels]:
            continue
        texts[candidate.text] = None
        if is_new:
            texts |= dict.fromkeys(code_of(step, target) for step in steps_of(task.op, candidate, target))
    digest = hashlib.sha256()
    for text in (*texts, *headers_of(texts)):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _suits(op: Operation, candidate: Candidate, target: Target) -> bool:
    """Whether the kernel of the first part of a candidate, which reads the operands of the op, suits the views around
    it."""
    return steps_of(op, candidate, target)[0].kernel.suits(op)


def fits(op: Operation, candidate: Candidate, target: Target) -> bool:
    """Whether a candidate found at one point is valid for all values of the dims."""
    try:
        steps = steps_of(op, candidate, target)
    except ValueError:
        return False
    return all(s.kernel.config_problem(s.op, s.config, target) is None for s in steps)
