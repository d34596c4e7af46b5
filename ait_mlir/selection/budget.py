"""Chooses kernels by time within a number of seconds, compiling of candidates included.

Remembered choices and the times of the package are used first. The other ops are timed in the order of their estimated
seconds times their number in the model. Library candidates need no compiling for the device, so they are timed for all
ops first. Next comes, for each op, the candidate with the best estimate, which the model would need anyway; then the
rest. Time spent waiting for another process that times on the same card does not count, up to as much again as the
budget, nor does the time to build the runtime library, which happens once on a machine.

When the time is over, compiling stops. If the best candidate by estimate at some size was not timed, its estimate and a
margin stand for its time, so that a library does not win only because nothing else was timed. An op without times is
chosen by estimate. All times are remembered, so the next compilation continues from there.
"""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ait_mlir import callers
from ait_mlir.dialects.ait.traits import ContractionExtents
from ait_mlir.errors import AitError, UnknownTimeError
from ait_mlir.lowering.candidates import Candidate, candidates_of, steps_of
from ait_mlir.lowering.choices import Choice
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point, points_of
from ait_mlir.selection.lanes import Lanes
from ait_mlir.selection.measure import Selector, TimesByPoint, current_setting
from ait_mlir.selection.meter import DeviceMeter, Meter
from ait_mlir.selection.race import SHORT_ROUNDS
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.shortlist import best_by_estimate, worth_timing
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import Setting, TimingCache, shipped_for

COMPILED, LIBRARY, NAMED = 6, 4, 3
"""Candidates of an op to compile, those of libraries, and algorithms of a library to time at a point, at most."""
LIBRARY_JOBS, ESTIMATED_JOBS, REST_JOBS, AHEAD = 12, 8, 2, 3
"""Ops whose candidates are compiled together, in each stage, and how many units wait to be compiled or timed."""
UNSURE = 4.0
"""Factor on the expected gain of a contraction, because its estimates are less accurate than those of other ops."""
DOUBTED, FITTED = 2.0, 1.5
"""The assumed time of an untimed candidate, as a multiple of its estimate; the second factor is for estimates fitted
to the card."""


@dataclass
class Budget:
    """A limit in seconds for measuring; the clock starts when the first op is timed."""

    seconds: float
    end: float | None = None
    waited: float = 0.0
    """Seconds of waiting that do not count; at most as many as the budget has."""

    def begin(self) -> None:
        """Start the clock, unless it runs already."""
        if self.end is None:
            self.end = time.monotonic() + self.seconds

    def left(self) -> float:
        if self.end is None:
            return self.seconds
        return max(0.0, self.end + min(self.waited, self.seconds) - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self.left() == 0


@dataclass
class Job:
    """An op to time: its library candidates, its best candidate by estimate, the other candidates, and known times."""

    index: int
    task: Task
    gain: float
    estimated: Candidate
    expected: dict[Point, dict[Candidate, float]]
    """At each point, the estimates of all candidates that are the best by estimate at some point."""
    libraries: list[Candidate]
    rest: list[Candidate]
    known: TimesByPoint
    timed: bool = False
    whole: bool = False


Unit = list[tuple[Job, list[Candidate]]]
"""Candidates that are compiled together."""


@dataclass
class BudgetSelector(Selector):
    """Makes choices by time as long as the budget lasts."""

    budget: Budget = field(default_factory=lambda: Budget(0.0))

    def choose(self, tasks: Sequence[Task], counts: Sequence[int] = ()) -> list[Choice | None]:
        found = [self._remembered_within(task) or self._from_shipped(task) for task in tasks]
        left = [i for i, choice in enumerate(found) if choice is None]
        if not left or self.budget.is_over:
            return found
        jobs = [job for i in left if (job := self._job(i, tasks[i], counts[i] if counts else 1)) is not None]
        jobs.sort(key=lambda job: -job.gain)
        start = time.monotonic()
        try:
            assert self.meter is not None
            self.meter.prepare()
            start = time.monotonic()
            self.budget.begin()
            self._spend(jobs)
        except (AitError, RuntimeError, OSError) as error:
            callers.warn(f"kernels could not be timed to the end; the rest is chosen by estimate: {error}")
        for job in jobs:
            found[job.index] = self._settle(job)
        timed = sum(job.timed for job in jobs)
        self.log.append(
            f"timed {timed} of {len(left)} ops without known times in {time.monotonic() - start:.1f} s "
            f"(budget {self.budget.seconds:g} s); by estimate: {len(left) - timed}"
        )
        return found

    def _job(self, index: int, task: Task, count: int) -> Job | None:
        """None for an op with one candidate."""
        points = points_of(task.scope, self.strategies)
        at_points = {
            p: {f: f.seconds for f in candidates_of(task.at(p), self.target) if not f.only_timed} for p in points
        }
        best = [best_by_estimate(list(fs)) for fs in at_points.values() if fs]
        expected = {p: {f: fs[f] for f in best if f in fs} for p, fs in at_points.items()}
        fitting = list(candidates_of(task.at(points[-1]), self.target))
        if not fitting:
            return None
        estimated = best_by_estimate(fitting)
        candidates = worth_timing(task, points, self.target)
        libraries = in_turn(w for w in candidates if w.asks_a_library or w.only_timed)[:LIBRARY]
        rest = [w for w in candidates if w not in libraries and not w.only_timed and w != estimated][:COMPILED]
        if not libraries and not rest:
            return None
        seconds = sum(min(fs.values(), default=0.0) for fs in expected.values())
        gain = seconds * count * (UNSURE if isinstance(task.op, ContractionExtents) else 1.0)
        known: TimesByPoint = {point: {} for point in points}
        return Job(index, task, gain, estimated, expected, libraries, rest, known)

    def _spend(self, jobs: Sequence[Job]) -> None:
        """Time candidates until the budget is spent; some units are compiled while another is timed."""
        assert self.meter is not None
        with self.meter.lanes.open():
            unfinished = self._spend_in_lanes(jobs, self.meter, self.meter.lanes)
        for job in jobs:
            job.whole = job.index not in unfinished
        if unfinished:
            self.meter.abandon()

    def _spend_in_lanes(self, jobs: Sequence[Job], meter: Meter, lanes: Lanes) -> set[int]:
        """Time candidates on several cards; returns the jobs with candidates left. All times of a job are taken on one
        card at a time, because they are compared.
        """
        units, built = self._units(jobs), list[Unit]()
        more = True
        while self.budget.left() > 0 and (more or built):
            if more and len(built) < AHEAD:
                unit = next(units, None)
                more = unit is not None
                if unit:
                    meter.build_together([(job.task, c) for job, candidates in unit for c in candidates])
                    built.append(unit)
                continue
            ready = [u for u in built if all(meter.is_built(job.task, candidates) for job, candidates in u)]
            free = next(((u, pair) for u in ready for pair in u if not lanes.is_busy(pair[0].index)), None)
            if free is None:
                if lanes.is_idle:
                    meter.wait(self.budget.left())
                else:
                    lanes.wait()
                    self.budget.waited = meter.waited
                continue
            unit, (job, candidates) = free
            unit.remove((job, candidates))
            if not unit:
                built.remove(unit)
            lanes.start(job.index, functools.partial(self._time_candidates, job, candidates))
            self.budget.waited = meter.waited
        return {job.index for unit in [*built, *units] for job, _ in unit} if more or built else set[int]()

    def _units(self, jobs: Sequence[Job]) -> Iterator[Unit]:
        """The units of compilation in the order of their use; the code of a unit is generated when it is taken."""
        stages: list[tuple[int, Callable[[Job], list[Candidate]]]] = [
            (LIBRARY_JOBS, lambda job: job.libraries),
            (ESTIMATED_JOBS, lambda job: [job.estimated] if job.estimated not in job.libraries else []),
            (REST_JOBS, lambda job: job.rest),
        ]
        for size, candidates_in in stages:
            for i in range(0, len(jobs), size):
                if self.budget.left() == 0:
                    yield [(job, candidates_in(job)) for job in jobs[i : i + size] if candidates_in(job)]
                    continue
                unit = [(job, self._still_open(job, candidates_in(job))) for job in jobs[i : i + size]]
                if unit := [(job, candidates) for job, candidates in unit if candidates]:
                    yield unit

    def _still_open(self, job: Job, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that still have to run, to be timed or to have their library list its algorithms."""
        for point, times in job.known.items():
            times |= self.knowledge.at(job.task, point, [c for c in candidates if c not in times])
        return [
            candidate
            for candidate in candidates
            if any(
                candidate not in times
                or (candidate.asks_a_library and self.knowledge.algorithms(job.task, point, candidate) is None)
                for point, times in job.known.items()
            )
        ]

    def _time_candidates(self, job: Job, candidates: Sequence[Candidate]) -> None:
        """Time candidates of one op at all points, with the best algorithms of a library."""
        wanted: list[Candidate] = []
        for candidate in candidates:
            wanted.append(candidate)
            if candidate.asks_a_library:
                listed = (a for point in job.known for a in self._listed(job.task, point, candidate)[:NAMED])
                wanted += [candidate.naming(algorithm) for algorithm in dict.fromkeys(listed)]
        for point, times in job.known.items():
            times |= self.knowledge.at(job.task, point, [w for w in wanted if w not in times])
            self._time(job.task, point, [w for w in wanted if w not in times], times)

    def _settle(self, job: Job) -> Choice | None:
        """The choice from measured times, and from estimates where the budget ended too early; None if nothing was
        timed, so that only estimates can decide."""
        job.timed = any(t is not None for times in job.known.values() for t in times.values())
        if not job.timed:
            return None
        known = job.known if job.whole else self._completed(job)
        candidates = list(dict.fromkeys(candidate for times in known.values() for candidate in times))
        choice = self._choose(job.task, self._measured(job.task, known), candidates)
        if choice is None or not any(
            candidate in times for candidate in choice.candidates for times in job.known.values()
        ):
            self._report(job.task, None, job.known)
            return None
        self._report(job.task, choice, job.known)
        if self.cache is not None:
            self.cache.keep_choice(
                self._within_key(job.task), json.dumps([self.budget.seconds, job.whole, choice.text])
            )
        return choice

    def _completed(self, job: Job) -> TimesByPoint:
        """The measured times, and assumed times (estimate and margin) of the best estimated candidates never timed."""
        timed = {candidate for times in job.known.values() for candidate in times}
        return {
            point: times
            | {w: Times(self._doubt(job, w) * s, 0.0) for w, s in job.expected[point].items() if w not in timed}
            for point, times in job.known.items()
        }

    def _doubt(self, job: Job, candidate: Candidate) -> float:
        steps = steps_of(job.task.op, candidate, self.target)
        return FITTED if all(s.kernel.is_fitted(s.op, s.config, self.target) for s in steps) else DOUBTED

    def _within_key(self, task: Task) -> str:
        return f"within {self._choice_key(task)}"

    def _remembered_within(self, task: Task) -> Choice | None:
        """A choice of a full measurement; or one made with as large a budget, or with all candidates timed."""
        if (choice := self._remembered(task)) is not None or self.cache is None:
            return choice
        found = self.cache.choice(self._within_key(task), json.loads)
        if found is None:
            return None
        seconds, whole, text = found
        return Choice.read(text) if whole or seconds >= self.budget.seconds else None


def in_turn(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates in their order, but the first one of each provider before the second one of any: a library with
    many algorithms leaves room for other kernels."""
    seen = Counter[str]()

    def turn(candidate: Candidate) -> int:
        provider = candidate.kernels[0][0]
        seen[provider] += 1
        return seen[provider]

    return sorted(candidates, key=turn)


@dataclass
class KnownSelector(BudgetSelector):
    """Makes choices only by known times: an op with several candidates and without a known time is an error."""

    @property
    def knows_times(self) -> bool:
        return True

    def choose(self, tasks: Sequence[Task], counts: Sequence[int] = ()) -> list[Choice | None]:
        found = super().choose(tasks, counts)
        for task, choice in zip(tasks, found, strict=True):
            if choice is None:
                raise UnknownTimeError(
                    f"no known time for {task.op.name} ({', '.join(map(str, task.op.operand_types))}), and "
                    f"AIT_FORCE_PROFILER_CACHE forbids measuring it; {TimingCache().other_versions()}unset it, or "
                    "let AIT_TIMINGS name the cache with its times"
                )
        return found


def known_selector(target: Target, strategies: Sequence[str] = ("hints",)) -> Selector:
    """The selector that uses only known times and needs no device."""
    shipped = shipped_for(target.arch) if target.kind == "cuda" else None
    setting, cache = current_setting(target.kind), TimingCache()
    return KnownSelector(target, setting, cache, shipped, None, strategies, budget=Budget(0.0))


def selector(
    target: Target, measure: bool, strategies: Sequence[str] = ("hints",), budget: float | None = None
) -> Selector:
    """The selector for a target; with `measure`, `require_device` has been asked. `budget`: seconds, or no limit."""
    shipped = shipped_for(target.arch) if target.kind == "cuda" else None
    if not measure:
        return Selector(target, Setting("", "", "", ""), None, shipped, strategies=strategies)
    setting, cache = current_setting(target.kind), TimingCache()
    if budget is None:
        return Selector(target, setting, cache, shipped, DeviceMeter(target), strategies)
    meter = DeviceMeter(target, rounds=SHORT_ROUNDS)
    return BudgetSelector(target, setting, cache, shipped, meter, strategies, budget=Budget(budget))


__all__ = ["Budget", "BudgetSelector", "KnownSelector", "known_selector", "selector"]
