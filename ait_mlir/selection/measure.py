"""Chooses kernels by time: by earlier measurements, by the times of the package and, on request, by measuring.

Each op is a task (tasks.py) with candidates (shortlist.py). Each candidate is timed at some values of the dims, the
points, under the conditions of a model (meter.py, race.py). The times select one kernel for all sizes, or several over
ranges of sizes (ranges.py). If neighbouring points have different winners, more points between them are measured.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.traits import ContractionExtents
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.host import progress
from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.candidates import Candidate, Step, candidates_of, is_usual, steps_of
from ait_mlir.lowering.choices import Choice, packs
from ait_mlir.lowering.estimates import in_a_model
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point, points_of
from ait_mlir.lowering.toolchain import default_arch, detect_cuda_arch, toolchain, why_no_cuda
from ait_mlir.selection.knowledge import Algorithm, Knowledge
from ait_mlir.selection.matching import Binding, axis_of_key, bound_axis, match, within
from ait_mlir.selection.meter import Meter
from ait_mlir.selection.ranges import Times, TimesAtPoint, axis_for, choose
from ait_mlir.selection.shortlist import best_by_estimate, code_digest, worth_timing
from ait_mlir.selection.structures import VERSION, at_point
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import METHOD, Record, Setting, Shipped, TimingCache, digest_of

TimesByPoint = dict[Point, dict[Candidate, Times | None]]
"""A row of times for each point of a task."""
CLOSE = 1.3
"""To find the end of a range, candidates within this ratio of the best on one side are measured."""
BISECTIONS = 3
NAMED, NAMED_CUT = 12, 4
"""Algorithms of a library to time for an op, when it runs the whole op, and when the op is cut."""


def require_device(target: Target) -> None:
    """Raise `PassError` unless this machine has a device to measure on."""
    if target.kind == "cuda" and detect_cuda_arch() is None:
        raise PassError(
            f"kernels for cuda cannot be measured here: {why_no_cuda()}; leave out measure to choose by estimate"
        )
    if target.kind == "rocm":
        raise PassError(
            "kernels for rocm cannot be measured: ait_mlir measures on the CPU and on CUDA cards only; "
            "leave out measure to choose by estimate"
        )


def static_digest(key: str, point: Point) -> str:
    """The digest of a task with numbers for dims, from its key and a point."""
    return digest_of(at_point(key, point))


@functools.cache
def current_setting(kind: str) -> Setting:
    """The card that times kernels, the driver and the libraries of this machine."""
    from ait_mlir.host import card
    from ait_mlir.host.cpu import cpu_fields
    from ait_mlir.runtime.loading import cublaslt_candidates, cudnn_candidates, openblas_candidates

    compiler = toolchain("cuda", default_arch("cuda")) if kind == "cuda" else toolchain("cpu", "native")
    version = next((line for line in compiler.identity.splitlines() if "release" in line or "gcc" in line), "")
    if kind == "cuda":
        libraries = card.library_versions([*cublaslt_candidates(), *cudnn_candidates()])
        return Setting(card.card_name(MEASURE_DEVICES.get()[0]), card.driver_version(), version.strip(), libraries)
    name = cpu_fields().get("model name", "cpu")
    return Setting(name, "", version.strip(), card.library_versions(openblas_candidates()))


@dataclass
class Selector:
    """Makes choices for the tasks of a graph by time.

    `meter` measures missing times. Without a meter only known times count, and a task without known times gets no
    choice.
    """

    target: Target
    setting: Setting
    cache: TimingCache | None
    shipped: Shipped | None
    meter: Meter | None = None
    strategies: Sequence[str] = ("hints",)
    log: list[str] = field(default_factory=list[str])

    @property
    def knows_times(self) -> bool:
        """Whether it can know times; otherwise estimates decide without asking it."""
        return self.meter is not None or self.shipped is not None

    def close(self) -> None:
        """Release the meter's resources."""
        if self.meter is not None:
            self.meter.close()

    def choose(self, tasks: Sequence[Task], counts: Sequence[int] = ()) -> list[Choice | None]:
        """A choice for each task; None if no time is known and none can be measured.

        `counts` says how often the model has each task, for selectors whose time is limited.
        """
        if self.meter is None:
            return [self._from_shipped(task) for task in tasks]
        found: list[Choice | None] = [self._remembered(task) for task in tasks]
        left = [i for i, choice in enumerate(found) if choice is None]
        if left:
            points = [points_of(tasks[i].scope, self.strategies) for i in left]
            listed = [worth_timing(tasks[i], p, self.target) for i, p in zip(left, points, strict=True)]
            known: list[TimesByPoint] = [
                {p: self.knowledge.at(tasks[i], p, candidates) for p in ps}
                for i, ps, candidates in zip(left, points, listed, strict=True)
            ]
            jobs = [(self._open(tasks[i], o, k), i, o, k) for i, o, k in zip(left, listed, known, strict=True)]
            jobs.sort(key=lambda job: len(job[0]))  # small jobs first: they are timed while the rest is compiled
            if wanted := [pair for job in jobs for pair in job[0]]:
                self.meter.build(wanted)

            def measure(job: tuple[object, int, Sequence[Candidate], TimesByPoint]) -> None:
                _, i, candidates, times = job
                found[i] = self._measure(tasks[i], candidates, times)
                self._remember(tasks[i], found[i])

            self.meter.lanes.each(jobs, measure)
        return found

    @property
    def knowledge(self) -> Knowledge:
        """The known times for the code that the meter times."""
        assert self.meter is not None
        return Knowledge(self.setting, self.cache, self.shipped, self.meter.source)

    # ** without a card **

    def _from_shipped(self, task: Task) -> Choice | None:
        """The choice by the package's times for this task, or for a more general task that covers it."""
        if self.shipped is None or (self.target.precision != "highest" and multiplies_f32(task.op)):
            return None  # the package's times are of exact products
        names = {f"d{i}": d.name for i, d in enumerate(task.scope.dims)}
        cases = ((key, binding) for key in self.shipped.by_op if (binding := match(key, task.key)) is not None)
        nearest_first = sorted(cases, key=lambda case: (case[0] != task.key, len(case[1]), case[0]))
        for key, binding in nearest_first:
            axis = bound_axis(key, binding, names)
            choice = self._choose(task, self._measured_elsewhere(task, key, binding, names), None, axis)
            if choice is not None:
                return within(choice, *task.scope.bounds(axis))
        points = [(p, self.shipped.by_static.get(digest_of(task.key_at(p)))) for p in points_of(task.scope)]
        found = [(self._place(task, p), r.times) for p, r in points if r]
        return self._choose(task, found, None)

    def _measured_elsewhere(
        self, task: Task, key: str, binding: Binding, names: Mapping[str, str]
    ) -> list[tuple[int, TimesAtPoint]]:
        """The package's times of a more general task, for the dims of this task: if a dim is a number, the times at
        this number.
        """
        assert self.shipped is not None
        records, axis = self.shipped.by_op[key], axis_of_key(key)
        near = records
        for i, value in enumerate(binding):
            if isinstance(value, int):
                near = [r for r in near if r.point[i] == value] or near
            else:
                dim = task.scope[names[value]]
                near = [r for r in near if dim.lo <= r.point[i] <= dim.hi]

        def place(record: Record) -> int:
            return axis.evaluate({f"d{i}": n for i, n in enumerate(record.point)})

        sizes = {place(r) for r in near}
        if _is_one_product(
            task.op
        ):  # only its size counts; other shapes of that size may have times of other candidates
            near = [r for r in records if place(r) in sizes]
        return [(place(r), r.times) for r in near]

    # ** with a card **

    def _measure(self, task: Task, candidates: Sequence[Candidate], known: TimesByPoint) -> Choice | None:
        assert self.meter is not None
        if len(candidates) <= 1:
            return Choice((candidates[0],)) if candidates else None
        candidates = self._named(task, list(known), candidates)
        known |= self.knowledge.elsewhere(task, candidates, known)
        for point, times in known.items():
            times |= self.knowledge.at(task, point, [w for w in candidates if w not in times])
        for point, times in known.items():
            self._time(task, point, [w for w in candidates if w not in times], times)
        choice = self._choose(task, self._measured(task, known), candidates)
        for _ in range(BISECTIONS):
            middle = self._middle(task, choice, known)
            if middle is None:
                break
            close = [w for w in candidates if any(_is_close(w, times) for times in known.values())]
            known[middle] = self.knowledge.at(task, middle, close)
            self._time(task, middle, [w for w in close if w not in known[middle]], known[middle])
            choice = self._choose(task, self._measured(task, known), candidates)
        self._report(task, choice, known)
        return choice

    def _open(self, task: Task, candidates: Sequence[Candidate], known: TimesByPoint) -> list[tuple[Task, Candidate]]:
        """The candidates that still have to run at some point, to be timed or to have their library list its
        algorithms.
        """

        def is_open(candidate: Candidate) -> bool:
            return any(
                candidate not in times
                or (candidate.asks_a_library and self.knowledge.algorithms(task, point, candidate) is None)
                for point, times in known.items()
            )

        return [(task, candidate) for candidate in candidates if len(candidates) > 1 and is_open(candidate)]

    def _named(self, task: Task, points: Sequence[Point], candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates to time; after each candidate of a library come candidates with its algorithms at
        all points.
        """
        named: list[Candidate] = []
        for candidate in candidates:
            named.append(candidate)
            if candidate.asks_a_library:
                lists = [self._listed(task, point, candidate) for point in points]
                turns = [a for row in itertools.zip_longest(*lists) for a in row if a is not None]
                found = list(dict.fromkeys(turns))[: NAMED if is_usual(task.op, candidate) else NAMED_CUT]
                named += [candidate.naming(algorithm) for algorithm in found]
        return named

    def _listed(self, task: Task, point: Point, candidate: Candidate) -> list[Algorithm]:
        """The algorithms that a library has for the candidate at a point, its best estimate first."""
        assert self.meter is not None
        found = self.knowledge.algorithms(task, point, candidate)
        if found is None:
            found = self.meter.algorithms(task, point, candidate)
            self.knowledge.keep_algorithms(task, point, candidate, found)
        return found

    def _time(
        self, task: Task, point: Point, candidates: Sequence[Candidate], times: dict[Candidate, Times | None]
    ) -> None:
        """Measure the candidates without known times, and store the times."""
        assert self.meter is not None
        if not candidates:
            return
        self.meter.build([(task, candidate) for candidate in candidates])  # builds only missing programs
        progress.step(f"pass select: timing {len(candidates)} candidates of {task.op.name}")
        estimate = _estimate(task, point, candidates, self.target)
        found = self.meter.race(task, point, candidates, estimate)
        new = {candidate: found.get(candidate) for candidate in candidates}
        times |= new
        self.knowledge.keep(task, point, new)

    def _middle(self, task: Task, choice: Choice | None, known: TimesByPoint) -> Point | None:
        """A point between two measured points around a switch of the choice; None if they are close already."""
        if choice is None or len(choice.candidates) == 1:
            return None
        for limit in choice.upto:
            low = max((p for p in known if self._place(task, p) <= limit), key=lambda p: self._place(task, p))
            high = min((p for p in known if self._place(task, p) > limit), key=lambda p: self._place(task, p))
            middle = tuple(round(math.sqrt(a * b)) for a, b in zip(low, high, strict=True))
            places = [self._place(task, p) for p in (low, middle, high)]
            if middle not in known and places[0] * 1.5 < places[2] and places[0] < places[1] < places[2]:
                return middle
        return None

    # ** both **

    def _choose(
        self,
        task: Task,
        measured: Sequence[tuple[int, TimesAtPoint]],
        candidates: Sequence[Candidate] | None,
        axis: Expr | None = None,
    ) -> Choice | None:
        """The choice among `candidates`, by default all shipped ones, over `axis`, by default the task's own."""
        axis = axis_for(task.op) if axis is None else axis
        fitting = set(
            candidates or filter(lambda w: self._can_be_trusted(task, w), {w for _, row in measured for w in row})
        )
        order = sorted(fitting, key=_preference)
        alone = {w for w in fitting if is_alone(task.op, w, self.target)}
        among = [
            (place, {w: _charged(t, w in alone) for w, t in row.items() if w in fitting}) for place, row in measured
        ]
        timed = [(place, row) for place, row in among if any(t is not None for t in row.values())]
        choice = choose(timed, order, axis)
        if choice is not None and len(choice.candidates) > 1 and any(self._packs(task, w) for w in choice.candidates):
            return choose(timed, order, axis, switch=math.inf)
        return choice

    def _packs(self, task: Task, candidate: Candidate) -> bool:
        return any(packs(s) for s in _steps(task.op, candidate, self.target))

    def _can_be_trusted(self, task: Task, candidate: Candidate) -> bool:
        """Whether a candidate measured elsewhere is still valid for the op and needs no library that may be missing."""
        try:
            steps = _steps(task.op, candidate, self.target)
        except ValueError:
            return False
        return all(
            not s.kernel.only_timed and s.kernel.config_problem(s.op, s.config, self.target) is None for s in steps
        )

    def _measured(self, task: Task, known: TimesByPoint) -> list[tuple[int, TimesAtPoint]]:
        return [(self._place(task, p), times) for p, times in known.items()]

    def _place(self, task: Task, point: Point) -> int:
        return axis_for(task.op).evaluate(task.environment(point))

    def _choice_key(self, task: Task) -> str:
        code = code_digest(task, self.target)
        parts = [VERSION, task.key, str(task.scope), list(self.strategies), asdict(self.setting), code, METHOD]
        shipped = None if self.shipped is None else asdict(self.shipped.setting)
        parts += [shipped, self.target.arch, self.target.precision, self.target.deterministic, self.target.peer_memory]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _remembered(self, task: Task) -> Choice | None:
        return None if self.cache is None else self.cache.choice(self._choice_key(task), Choice.read)

    def _remember(self, task: Task, choice: Choice | None) -> None:
        if self.cache is None or choice is None:
            return
        self.cache.keep_choice(self._choice_key(task), choice.text)

    def _report(self, task: Task, choice: Choice | None, known: TimesByPoint) -> None:
        self.log.append(f"{task.op.name} {', '.join(map(str, task.op.operand_types))}")
        for point, times in sorted(known.items()):
            ran = sorted(((t, w) for w, t in times.items() if t is not None), key=lambda item: item[0].seconds)
            for t, candidate in ran[:3]:
                self.log.append(f"  {point}: {t.seconds * 1e6:.2f} us +-{t.spread:.1%} {candidate.describe()}")
        self.log.append(f"  chosen: {'by estimate' if choice is None else choice.describe()}")


@functools.lru_cache(maxsize=256)
def _steps(op: Operation, candidate: Candidate, target: Target) -> tuple[Step, ...]:
    """`steps_of`, cached: the op of a task never changes, and several functions need the steps."""
    return steps_of(op, candidate, target)


def is_alone(op: Operation, candidate: Candidate, target: Target) -> bool:
    """Whether a candidate has a launch that cannot overlap those around it."""
    return target.kind == "cuda" and any(s.kernel.alone for s in _steps(op, candidate, target))


def _estimate(task: Task, point: Point, candidates: Sequence[Candidate], target: Target) -> float:
    """A guess of the seconds of one run, for how many runs to take."""
    found = list(candidates_of(task.at(point), target))
    return best_by_estimate(found).seconds if found else 1e-5


def _is_one_product(op: Operation) -> bool:
    """Whether the op is one matrix product without batch: its time depends on the number of rows, not their shape."""
    return isinstance(op, ContractionExtents) and all(e.as_int() == 1 for e in op.extents().batch)


def multiplies_f32(op: Operation) -> bool:
    """Whether the precision setting may change how the op is computed."""
    return isinstance(op, ContractionExtents | AttentionOp) and isinstance(
        tensor_type(op.operands[0]).element_type, Float32Type
    )


def _preference(candidate: Candidate) -> tuple[int, bool, bool, str]:
    """The order among equally fast candidates: fewest launches first, then our kernels, then no named algorithm. It is
    the same with and without a card.
    """
    return len(candidate.kernels), candidate.asks_a_library, bool(candidate.algorithm), candidate.text


def _charged(times: Times | None, alone: bool) -> Times | None:
    return times if times is None else replace(times, seconds=in_a_model(times.seconds, alone))


def _is_close(candidate: Candidate, times: TimesAtPoint) -> bool:
    mine = times.get(candidate)
    best = min((t.seconds for t in times.values() if t is not None), default=0.0)
    return mine is not None and mine.seconds <= CLOSE * best


def show(lines: Sequence[str]) -> None:
    """Print the measured times on standard error."""
    print("\n".join(lines), file=sys.stderr, flush=True)


__all__ = ["Record", "Selector", "current_setting", "require_device", "show"]
