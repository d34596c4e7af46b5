"""Time kernels on random problems, for estimates that are fitted to a card.

    python -m benchmarks.calibrate --seed 1 --count 300 --seconds 80 -o samples.jsonl
    python -m benchmarks.calibrate --build --seed 1 --count 300        # compiles the candidates; needs no card
    python -m benchmarks.calibrate --target cpu --count 20 --seconds 60 -o cpu.jsonl

`benchmarks/problems.py` has the problems. For each of them, candidates of all providers are timed in turns, under the
conditions of a model (`selection/meter.py`). A line of the output is one problem with all its times, written when it is
complete; the first line says which card it was. Problems that the file has already are not timed again, so the same
command goes on where it was stopped, and several seeds may go to one file. `--seconds` includes compiling.
`benchmarks/fit.py` fits estimates to such files, `benchmarks/regret.py` tells how good the choices by estimate are.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ait_mlir.errors import AitError
from ait_mlir.lowering.candidates import Candidate, candidates_of
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.base import Config
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.selection.measure import current_setting, require_device
from ait_mlir.selection.meter import DeviceMeter
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.shortlist import best_by_estimate
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import Setting
from benchmarks.problems import FAMILIES, Problem, draw

SAMPLES = ((4, 1.0),)
"""Samples of each candidate: enough for differences of 3 %."""
REST = 1.0
"""The card rests as long as it has worked."""
CHUNK, AHEAD = 24, 3
"""Problems that are compiled together, and how many such chunks are under way."""
BEST, OTHERS, FEW = 6, 4, 4
"""Configurations of a kernel to time: the first ones, some of the rest, and those of families with few candidates."""
CUTS = 1
FEW_TILES = {
    "hopper": ((128, 128, 5, 1, 2, 1), (128, 256, 4, 2, 1, 2), (64, 128, 8, 1, 1, 1), (64, 64, 6, 1, 1, 1)),
    "native": ((128, 128, 64), (64, 64, 64), (32, 64, 64)),
    "stream": ((32, 1, 8, 2, 2), (32, 2, 8, 2, 2)),
}
"""The tiles of families with few candidates, by their first numbers: a kernel is compiled for each."""
TILE_KEYS = {
    "hopper": ("tile_m", "tile_n", "stages", "cluster", "teams", "groups"),
    "native": ("tile_m", "tile_n", "tile_k"),
    "stream": ("columns", "eights", "warps", "chunks", "blocks"),
}


def to_time(problem: Problem, task: Task, target: Target) -> list[Candidate]:
    """The candidates to time: the best by estimate, the first of each provider, some others, some cuts."""
    rng = random.Random(problem.text)
    family = FAMILIES[problem.family]
    found = sorted(candidates_of(task.op, target), key=lambda f: f.seconds)
    candidates = dict.fromkeys([best_by_estimate(found)] if family.all_candidates else [])
    if family.cuts:
        candidates |= dict.fromkeys(
            [f for f in found if f.cut is not None and all(_is_few(p, dict(c)) for p, c in f.kernels)][:CUTS]
        )
    for kernel in kernels_for(task.op, target):
        configs = kernel.every_config(task.op, target)
        if kernel.only_timed:
            configs = configs[: family.libraries]
        elif family.all_candidates:
            rest = configs[BEST:]
            configs = configs[:BEST] + rng.sample(rest, min(OTHERS, len(rest)))
        else:
            configs = [c for c in configs if _is_few(kernel.provider, c)][:FEW]
        candidates |= dict.fromkeys(Candidate.of(None, [(kernel.provider, c)]) for c in configs)
    return list(candidates)


def _is_few(provider: str, config: Config) -> bool:
    keys = TILE_KEYS.get(provider, ())
    return not keys or keys[0] not in config or tuple(config[k] for k in keys) in FEW_TILES[provider]


# ** files **


@dataclass(frozen=True)
class Sampled:
    """A problem with the times of its candidates; None for one that could not run."""

    problem: Problem
    times: dict[Candidate, Times | None]

    @property
    def text(self) -> str:
        candidates = [
            [json.loads(w.text), None if t is None else [float(f"{t.seconds * 1e6:.4g}"), round(t.spread, 4)]]
            for w, t in self.times.items()
        ]
        return json.dumps({"problem": json.loads(self.problem.text), "times": candidates}, separators=(",", ":"))

    @staticmethod
    def read(text: str) -> Sampled:
        data = json.loads(text)
        times = {
            Candidate.read(json.dumps(candidate)): None if t is None else Times(t[0] * 1e-6, t[1])
            for candidate, t in data["times"]
        }
        return Sampled(Problem.read(json.dumps(data["problem"])), times)


@dataclass(frozen=True)
class Samples:
    """The contents of a file: the architecture, the setting, and the problems."""

    arch: str
    setting: Setting
    problems: list[Sampled]


def read_samples(path: Path) -> Samples:
    """Read a file of samples; a last line that was not written to its end is left out. `AitError` for anything else."""
    try:
        head, *lines = path.read_text(encoding="utf-8").split("\n")
        first = json.loads(head)
        return Samples(first["arch"], Setting(**first["setting"]), [Sampled.read(line) for line in lines[:-1]])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise AitError(f"{path} is no file of samples: {error}") from error


# ** measuring **


def chunks(problems: Sequence[Problem], target: Target) -> Iterator[list[tuple[Problem, Task, list[Candidate]]]]:
    """Problems with their candidates, as many as are compiled together; few at first, so that timing starts early."""
    at, size = 0, CHUNK // 2
    while at < len(problems):
        made = [(p, p.task()) for p in problems[at : at + size]]
        yield [(p, task, to_time(p, task, target)) for p, task in made]
        at, size = at + size, CHUNK


def measure(problems: Sequence[Problem], target: Target, path: Path, seconds: float) -> int:
    """Time the problems and append them to the file until all are timed or the time is over; returns how many were
    timed.
    """
    end, done = time.monotonic() + seconds, 0
    waiting = chunks(problems, target)
    under_way: list[list[tuple[Problem, Task, list[Candidate]]]] = []
    more = True
    with DeviceMeter(target, rest=REST, rounds=SAMPLES) as meter, path.open("a", encoding="utf-8") as output:
        while (more or under_way) and time.monotonic() < end:
            if more and len(under_way) < AHEAD:
                chunk = next(waiting, None)
                more = chunk is not None
                if chunk:
                    meter.build_together(
                        [(task, candidate) for _, task, candidates in chunk for candidate in candidates]
                    )
                    under_way.append(chunk)
                continue
            if not all(meter.is_built(task, candidates) for _, task, candidates in under_way[0]):
                meter.wait(max(0.0, end - time.monotonic()))
                continue
            problem, task, candidates = under_way[0].pop(0)
            found = meter.race(task, (), candidates, best_by_estimate(list(candidates_of(task.op, target))).seconds)
            output.write(Sampled(problem, {w: found.get(w) for w in candidates}).text + "\n")
            output.flush()
            done += 1
            if not under_way[0]:
                under_way.pop(0)
        if more or under_way:
            meter.abandon()
    return done


def build(problems: Sequence[Problem], target: Target) -> int:
    """Compile the candidates into the cache of objects; returns how many candidates there are."""
    count = 0
    with DeviceMeter(target) as meter:
        for chunk in chunks(problems, target):
            pairs = [(task, candidate) for _, task, candidates in chunk for candidate in candidates]
            meter.build_together(pairs)
            while not all(meter.is_built(task, [candidate]) for task, candidate in pairs):
                meter.wait(60)
            count += len(pairs)
            print(f"{count} candidates built", flush=True)
    return count


def parser(description: str) -> argparse.ArgumentParser:
    """The options of programs that time problems."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--count", type=int, default=300, help="problems (default: 300)")
    made.add_argument("--seconds", type=float, default=80, help="time limit, compiling included (default: 80)")
    made.add_argument("--families", default="", help=f"with commas between (default: all): {', '.join(FAMILIES)}")
    made.add_argument("--target", choices=("cuda", "cpu"), default="cuda")
    made.add_argument("-o", "--output", type=Path, help="the file of samples to write, or to add to")
    return made


def problems_of(args: argparse.Namespace) -> list[Problem]:
    """The problems selected by the options; `AitError` for an unknown family."""
    families = [name for name in args.families.split(",") if name]
    if unknown := sorted(set(families) - FAMILIES.keys()):
        raise AitError(f"{unknown[0]!r} is no family of problems; known are {', '.join(FAMILIES)}")
    return draw(args.seed, args.count, families)


def measure_into(path: Path, args: argparse.Namespace) -> None:
    """Time the problems selected by the options, except problems that the file already has."""
    target, problems = Target(args.target, default_arch(args.target)), problems_of(args)
    require_device(target)
    setting = current_setting(target.kind)
    if path.is_file():
        before = read_samples(path)
        if before.setting != setting:
            raise AitError(f"{path} is of another setting: {before.setting}, here is {setting}")
        path.write_text("".join(f"{line}\n" for line in path.read_text().split("\n")[:-1]))  # whole lines only
        known = {s.problem for s in before.problems}
        problems = [p for p in problems if p not in known]
    else:
        path.write_text(json.dumps({"arch": target.arch, "setting": asdict(setting)}) + "\n", encoding="utf-8")
    start = time.monotonic()
    done = measure(problems, target, path, args.seconds)
    print(f"{path}: timed {done} of {len(problems)} problems in {time.monotonic() - start:.1f} s", flush=True)


def main() -> int:
    options = parser("Time kernels on random problems.")
    options.add_argument("--build", action="store_true", help="compile the candidates, time nothing")
    args = options.parse_args()
    if args.build:
        build(problems_of(args), Target(args.target, default_arch(args.target)))
    elif args.output is None:
        options.error("-o says which file to write")
    else:
        measure_into(args.output, args)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
