"""Placement by CP-SAT of OR-Tools, an optional package: it can prove that no smaller arena exists."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from ait_mlir.errors import AitError
from ait_mlir.passes.memory.placement import Lifetimes, Placement
from ait_mlir.passes.memory.search import Search


class MissingSolver(AitError):
    """OR-Tools is not installed."""


def cp_model() -> Any:
    """The module of CP-SAT; `MissingSolver` if OR-Tools is not installed."""
    try:
        from ortools.sat.python import cp_model as module
    except ImportError as error:
        raise MissingSolver(
            f"the strategy 'exact' needs OR-Tools ({error}); pip install 'ait_mlir[planner]', or use 'search'"
        ) from error
    return module


class Exact:
    """A strategy: `Search` for a third of the time, then CP-SAT from its result; `stopped` says whether time ran out.

    One object is for one plan: its time starts when the object is made.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._cp = cp_model()
        self._first = Search(seconds / 3, clock)
        self._whole = Search(seconds, clock)
        self.stopped = False

    def __call__(self, sizes: Mapping[int, int], live: Lifetimes) -> Placement:
        """The best placement that was found, at least as good as the greedy one."""
        start = self._first(sizes, live)
        if start.optimal:
            return start
        left = self._whole.left()
        found = self._solved(sizes, live, start, left) if left > 0 else start
        self.stopped |= not found.optimal
        return found

    def _solved(self, sizes: Mapping[int, int], live: Lifetimes, start: Placement, seconds: float) -> Placement:
        unit = math.gcd(*sizes.values())
        model = self._cp.CpModel()
        most = start.top // unit
        top = model.new_int_var(live.peak(sizes) // unit, most, "top")
        lows: dict[int, Any] = {}
        lives: list[Any] = []
        spans: list[Any] = []
        for index, size in ((i, size // unit) for i, size in sizes.items() if size):
            low = lows[index] = model.new_int_var(0, most - size, f"low{index}")
            lives.append(model.new_fixed_size_interval_var(live.span(index)[0], live.length(index), f"life{index}"))
            spans.append(model.new_fixed_size_interval_var(low, size, f"span{index}"))
            model.add(low + size <= top)
            model.add_hint(low, start.spans[index][0] // unit)
        model.add_hint(top, most)
        model.add_no_overlap_2d(lives, spans)
        model.minimize(top)
        solver = self._cp.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(model)
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return start
        placed = {i: solver.value(low) * unit for i, low in lows.items()}
        result = {i: (placed.get(i, 0), placed.get(i, 0) + size) for i, size in sizes.items()}
        return Placement(result, status == self._cp.OPTIMAL)
