"""The time that choices by estimate lose: the time of the candidate chosen without measuring, over the best time.

    python -m benchmarks.regret samples-7.jsonl samples-8.jsonl            # of measured problems; needs no card
    python -m benchmarks.regret --seed 7 --count 100 --seconds 60 -o samples-7.jsonl      # measures them first
    python -m benchmarks.regret samples-7.jsonl --estimates none           # with the hand-made estimates

The problems are random (`benchmarks/problems.py`); take a seed that estimates were not fitted to. A choice is made
among the candidates that were measured, but for kernels that are never chosen by estimate. `--estimates` names another
table than the package's.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ait_mlir.errors import AitError
from ait_mlir.lowering.candidates import Candidate, estimate, steps_of
from ait_mlir.lowering.estimates import in_a_model
from ait_mlir.lowering.kernels import Target
from ait_mlir.selection.measure import is_alone
from benchmarks import calibrate, record
from benchmarks.calibrate import Sampled, read_samples
from benchmarks.problems import Problem

WORST, SHOWN_CANDIDATES = 12, 4
"""Problems to show, and candidates of each."""


@dataclass(frozen=True)
class Row:
    """A problem: the estimates and the times of its candidates in seconds."""

    problem: Problem
    estimates: dict[Candidate, float]
    times: dict[Candidate, float]

    @property
    def chosen(self) -> Candidate:
        return min(self.estimates, key=lambda w: (self.estimates[w], len(w.kernels)))

    @property
    def best(self) -> Candidate:
        return min(self.times, key=lambda w: self.times[w])

    @property
    def regret(self) -> float:
        return self.times[self.chosen] / self.times[self.best]


def row(sampled: Sampled, target: Target) -> Row | None:
    """None for a problem with one candidate at most."""
    op = sampled.problem.task().op
    times = {
        candidate: in_a_model(t.seconds, is_alone(op, candidate, target))
        for candidate, t in sampled.times.items()
        if t is not None and not any(step.kernel.only_timed for step in steps_of(op, candidate, target))
    }
    if len(times) < 2:
        return None
    return Row(sampled.problem, {candidate: estimate(op, candidate, target) for candidate in times}, times)


def report(rows: Sequence[Row], save: Path | None) -> None:
    """Print the regret of each family and of all, and the worst problems with estimates and times."""
    families: dict[str, list[float]] = defaultdict(list)
    for r in rows:
        families[r.problem.family].append(r.regret)
    cells: list[list[str]] = []
    for name, values in [*sorted(families.items()), ("all", [r.regret for r in rows])]:
        mean = math.exp(statistics.fmean(map(math.log, values)))
        high = sorted(values)[min(len(values) - 1, math.ceil(0.95 * len(values)) - 1)]
        right = sum(v < 1.02 for v in values) / len(values)
        cells.append([name, str(len(values)), f"{mean:.3f}", f"{high:.3f}", f"{max(values):.2f}", f"{right:.0%}"])
    heads = ["family", "problems", "geometric mean", "95th percentile", "worst", "best candidate chosen"]
    record.show(save, heads, cells, "cuda" if torch.cuda.is_available() else "cpu")
    print(f"\nThe worst {WORST}: estimate and time in us")
    for r in sorted(rows, key=lambda r: -r.regret)[:WORST]:
        print(f"{r.regret:.2f} {r.problem.title}")
        ordered = sorted(r.times, key=lambda w: r.times[w])[: SHOWN_CANDIDATES - 1]
        for candidate in dict.fromkeys((r.chosen, *ordered)):
            mark = "chosen" if candidate == r.chosen else ""
            print(
                f"  {r.estimates[candidate] * 1e6:9.2f} {r.times[candidate] * 1e6:9.2f} {mark:6} {candidate.describe()}"
            )


def main() -> int:
    options = calibrate.parser("How much time choices by estimate lose.")
    options.add_argument("samples", nargs="*", type=Path, help="files of samples")
    options.add_argument("--estimates", help="a table of estimates, or 'none' for those written in the kernels")
    record.add_save(options)
    args = options.parse_args()
    if args.estimates is not None:
        os.environ["AIT_ESTIMATES"] = args.estimates
    if args.output is not None:
        calibrate.measure_into(args.output, args)
        args.samples.append(args.output)
    elif not args.samples:
        options.error("name files of samples, or with -o one to write")
    rows: list[Row] = []
    for path in args.samples:
        samples = read_samples(path)
        target = Target("cpu" if samples.arch == "native" else "cuda", samples.arch)
        rows += [found for sampled in samples.problems if (found := row(sampled, target)) is not None]
    if not rows:
        raise AitError("no problem of these files has more than one candidate to choose from")
    report(rows, args.save)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
