"""Tests whether selection repeats its choices: it chooses for the ops of a model several times, each time without known
times.

    python -m benchmarks.selection bert
    python -m benchmarks.selection llama --sizes 4x512 --sustained

Prints how long each run took, the choices that differ between the first run and the others, where another candidate was
the best, and how far the times of the candidates within 10 % of the best are apart. With --sustained these are also
timed without the rests between graphs, as in a run of large products that never ends.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.frontend.graph import build_module
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.choices import Choice
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Point
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.selection.measure import Selector, current_setting
from ait_mlir.selection.meter import DeviceMeter
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.select import needs_kernel
from ait_mlir.selection.tasks import Task, make_task
from ait_mlir.selection.timings import TimingCache
from benchmarks.workloads import MODELS, Size

NEAR = 1.1
"""Candidates within this ratio of the best are compared."""

Found = dict[Point, dict[Candidate, Times]]


def tasks_of(name: str, sizes: Sequence[Size], target: Target) -> list[Task]:
    """The different tasks of one layer of a model, f16, with these sizes as hints."""
    module = build_module(MODELS[name].build(torch.float16, 1, sizes).outputs, "model")
    run_to_phase(module, "fused", CompileOptions(target.kind, target.arch))
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    tasks = [make_task(op) for graph in graphs for op in graph.block.ops if needs_kernel(op)]
    return list({task.key: task for task in tasks}.values())


class WatchedMeter(DeviceMeter):
    """A meter that counts the seconds of races and of waiting for compilers, and the timed candidates."""

    racing = waiting = 0.0
    raced = 0

    def race(
        self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
    ) -> dict[Candidate, Times]:
        start = time.perf_counter()
        for program in (self.program(task, candidate) for candidate in candidates):
            if program is not None:
                _ = program.path
        built = time.perf_counter()
        found = super().race(task, point, candidates, estimate)
        self.waiting += built - start
        self.racing += time.perf_counter() - built
        self.raced += len(candidates)
        return found


@dataclass(frozen=True)
class Run:
    """The choices of one run, and its measurements by task."""

    choices: list[Choice | None]
    times: dict[str, Found]


def choose(tasks: Sequence[Task], target: Target, path: Path) -> Run:
    """Select with an empty cache of times."""
    cache = TimingCache(path)
    with WatchedMeter(target) as meter:
        start = time.perf_counter()
        choices = Selector(target, current_setting(target.kind), cache, None, meter).choose(tasks)
        seconds = time.perf_counter() - start
    print(
        f"selected in {seconds:.1f} s: {meter.racing:.1f} s timing {meter.raced} candidates, "
        f"{meter.waiting:.1f} s waiting for compilers",
        flush=True,
    )
    times: dict[str, Found] = {}
    for (op, point), candidate, t in cache.known():
        times.setdefault(op, {}).setdefault(point, {})[candidate] = t
    return Run(choices, times)


def near(times: dict[Candidate, Times]) -> list[Candidate]:
    """The candidates that are about as fast as the best, the best first."""
    best = min(t.seconds for t in times.values())
    return sorted((w for w, t in times.items() if t.seconds <= NEAR * best), key=lambda w: times[w].seconds)


def compare(tasks: Sequence[Task], first: Run, other: Run) -> None:
    """Print the choices that differ, and how far times are apart."""
    same = sum(a == b for a, b in zip(first.choices, other.choices, strict=True))
    print(f"choices: {same} of {len(tasks)} the same")
    distances: list[float] = []
    for task, a, b in zip(tasks, first.choices, other.choices, strict=True):
        title = f"{task.op.name} {', '.join(map(str, task.op.operand_types))}"
        if a != b:
            print(f"{title}\n  {a and a.describe()}\n  {b and b.describe()}")
        mine, theirs = first.times.get(task.key, {}), other.times.get(task.key, {})
        for point in sorted(mine.keys() & theirs.keys()):
            candidates = [w for w in near(mine[point]) if w in theirs[point]]
            ratios = [theirs[point][w].seconds / mine[point][w].seconds for w in candidates]
            distances += [abs(r - 1) for r in ratios]
            best, best_then = candidates[0], near(theirs[point])[0]
            if best != best_then and best_then in mine[point]:
                lost = mine[point][best_then].seconds / mine[point][best].seconds - 1
                print(f"{title} at {point}: another best candidate, {lost:.2%} slower in the first run")
    if distances:
        print(f"times apart: {statistics.median(distances):.2%} in the middle, {max(distances):.2%} at most")


def sustained(tasks: Sequence[Task], target: Target, run: Run) -> None:
    """Time the best candidates at the largest point, with and without pauses between runs."""
    with DeviceMeter(target) as resting, DeviceMeter(target, rest=0.0) as busy:
        for task in tasks:
            if not (found := run.times.get(task.key)):
                continue
            point = max(found)
            candidates = near(found[point])
            estimate = found[point][candidates[0]].seconds
            for meter in (resting, busy):
                meter.build([(task, candidate) for candidate in candidates])
            rows = resting.race(task, point, candidates, estimate), busy.race(task, point, candidates, estimate)
            print(f"{task.op.name} {', '.join(map(str, task.op.operand_types))} at {point}: us with rests, without")
            for candidate in candidates:
                print(
                    f"  {', '.join(f'{r[candidate].seconds * 1e6:.2f}' for r in rows)} {candidate.describe()}",
                    flush=True,
                )


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether selection repeats.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--sizes", help="BATCHxLENGTH with commas between (default: the model's own)")
    parser.add_argument("--runs", type=int, default=2, help="how often to select (default: 2)")
    parser.add_argument("--sustained", action="store_true", help="also time the best candidates without rests")
    args = parser.parse_args()
    model, target = MODELS[args.model], Target("cuda", default_arch("cuda"))
    sizes = [(b, s) for b in model.batches for s in model.lengths]
    if args.sizes:
        sizes = [(int(b), int(s)) for b, s in (part.split("x") for part in args.sizes.split(","))]
    tasks = tasks_of(args.model, sizes, target)
    with tempfile.TemporaryDirectory() as folder:
        runs = [choose(tasks, target, Path(folder) / f"{i}.sqlite3") for i in range(max(1, args.runs))]
    for other in runs[1:]:
        compare(tasks, runs[0], other)
    if args.sustained:
        sustained(tasks, target, runs[0])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
