"""Fit estimates to samples of a card and write the table that is part of the package.

    python -m benchmarks.fit samples-*.jsonl -o ait_mlir/timings/estimates/h200.json
    python -m benchmarks.fit convs.jsonl --keep ait_mlir/timings/estimates/h200.json -o new.json    # other fits stay

Samples come from `benchmarks/calibrate.py`. Each kernel has a coefficient for each of its terms
(`ait_mlir/lowering/estimates.py`), fitted to the logarithms of its times: near the best time of a problem most, and
where samples say little, near the rough rates. A table for another card is used there with `AIT_ESTIMATES=FILE`.
Prints the error of each kernel: the root mean square of the logarithms, and the 95th percentile of the ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares  # pyright: ignore[reportUnknownVariableType]

from ait_mlir.errors import AitError
from ait_mlir.lowering.candidates import steps_of
from ait_mlir.lowering.estimates import POWER, Fit, Table, Terms, fit_name, read_table, write_table
from ait_mlir.lowering.kernels import Target
from benchmarks.calibrate import Sampled, read_samples

LOWEST, HIGHEST = 1e-3, 30.0
"""Coefficients are between these."""
PHYSICAL = {"bytes": 1.0}
"""Terms whose rough rate is one that the card cannot exceed, with their least coefficient: samples that fit into the
cache would make memory faster than it is."""
PRIOR = 0.03
"""How much a coefficient that differs from 1 by a factor of e counts: as a sample that is off by so much."""
FEWEST = 8
"""Samples of a kernel to fit it to."""
ROUGH = ("split attention",)
"""Fits that keep their rough rates: few of the samples are larger than the cache. Decoding of 16 x 32 heads over 2,048
columns takes 128.8 us; the rough rates say 130.6, a fit 147.9, with a `cache` 12 times as slow."""
SLOW = 0.7
"""A sample that takes r times as long as the best of its problem counts r to the minus so much."""


@dataclass(frozen=True)
class Sample:
    """A time of a kernel in seconds, its parts, and its weight."""

    terms: Terms
    seconds: float
    weight: float = 1.0


def samples_of(problems: Iterable[Sampled], target: Target) -> dict[str, list[Sample]]:
    """The samples by the name of their fit, without candidates of several launches."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for sampled in problems:
        op = sampled.problem.task().op
        best = min((t.seconds for t in sampled.times.values() if t is not None), default=0.0)
        for candidate, t in sampled.times.items():
            if t is None or len(candidate.kernels) > 1:
                continue
            (step,) = steps_of(op, candidate, target)
            terms = step.kernel.terms(step.op, step.config, target)
            if terms is not None:
                name = fit_name(step.kernel.provider, step.kernel.name, terms.kind)
                found[name].append(Sample(terms, t.seconds, (best / t.seconds) ** SLOW))
    return found


def fit(samples: Sequence[Sample]) -> Fit:
    """The coefficients with the smallest weighted error."""
    first = list(dict.fromkeys(name for s in samples for name in s.terms.first))
    work = list(dict.fromkeys(name for s in samples for name in s.terms.work))
    a = np.array([[s.terms.first.get(name, 0.0) for name in first] for s in samples]).reshape(len(samples), len(first))
    b = np.array([[s.terms.work.get(name, 0.0) for name in work] for s in samples]).reshape(len(samples), len(work))
    times = np.log([s.seconds for s in samples])
    weights = np.array([s.weight for s in samples])

    def estimate(x: NDArray[np.float64]) -> NDArray[np.float64]:
        c = np.exp(x)
        return a @ c[: len(first)] + ((b * c[len(first) :]) ** POWER).sum(axis=1) ** (1 / POWER)

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([weights * (np.log(estimate(x)) - times), PRIOR * x])

    count = len(first) + len(work)
    solve = cast(Any, least_squares)  # has no types
    least = np.log([PHYSICAL.get(name, LOWEST) for name in (*first, *work)])
    starts = [np.maximum(start, least + 1e-6) for start in (np.zeros(count), np.full(count, -1.0))]
    limits = (least, np.full(count, math.log(HIGHEST)))
    found = min(
        (solve(residuals, x, bounds=limits, loss="soft_l1", f_scale=0.1) for x in starts), key=lambda r: float(r.cost)
    )
    fitted: NDArray[np.float64] = found.x
    errors = np.log(estimate(fitted)) - times
    error = math.sqrt(float((weights * errors**2).sum() / weights.sum()))
    return Fit(dict(zip((*first, *work), np.exp(fitted).tolist(), strict=True)), error, len(samples))


def main() -> int:
    parser = argparse.ArgumentParser(description="Fit estimates to samples of a card.")
    parser.add_argument("samples", nargs="+", type=Path, help="files of samples, of one card")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the table to write")
    parser.add_argument("--keep", type=Path, metavar="TABLE", help="a table whose other fits are kept")
    args = parser.parse_args()
    files = [read_samples(path) for path in args.samples]
    first = files[0]
    if other := next((f for f in files if (f.arch, f.setting.card) != (first.arch, first.setting.card)), None):
        raise AitError(f"the samples are of two cards: {first.setting.card} and {other.setting.card}")
    target = Target("cpu" if first.arch == "native" else "cuda", first.arch)
    found = samples_of([p for f in files for p in f.problems], target)
    kept = read_table(args.keep) if args.keep else Table(first.arch, first.setting.card)
    if (kept.arch, kept.card) != (first.arch, first.setting.card):
        raise AitError(f"the samples are of {first.setting.card}, but {args.keep} is of {kept.card}")
    fits: dict[str, Fit] = {}
    for name, samples in sorted(found.items()):
        if len(samples) < FEWEST:
            print(f"{name}: {len(samples)} samples are too few")
            continue
        if name in ROUGH:
            print(f"{name}: {len(samples)} samples, rough rates")
            continue
        fits[name] = fit(samples)
        off = sorted(abs(math.log(fits[name].seconds(s.terms) / s.seconds)) for s in samples)
        high = math.exp(off[math.ceil(0.95 * len(off)) - 1])
        print(f"{name}: {len(samples)} samples, error {fits[name].error:.1%}, 95th percentile {high:.2f}")
    if not fits:
        raise AitError("there are too few samples of every kernel")
    command = f"python -m benchmarks.fit {' '.join(path.name for path in args.samples)}"
    if args.keep:
        command = f"{json.loads(args.keep.read_text())['command']}; {command} --keep {args.keep.name}"
    write_table(
        args.output, Table(first.arch, first.setting.card, {**kept.fits, **fits}), asdict(first.setting), command
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
