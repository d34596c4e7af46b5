"""Measure kernels for the models and write the times of this card that are part of the package.

    python -m benchmarks.timings -o ait_mlir/timings/h200.json
    python -m benchmarks.timings bert --sizes 1x128,32x128 -o /tmp/bert.json
    python -m benchmarks.timings --build                           # compiles the candidates; needs no card
    python -m benchmarks.timings --migrate -o ait_mlir/timings/h200.json   # keys of today; needs no card

One layer of each model is compiled with its usual sizes as hints, of each length and of all together; what was
measured for it, in a cache of its own, is written as text when the model is done. Times of the file that are not
measured now stay as they are, if they were taken in the same setting: those of other ops and points, and of points at
which the package's times are all of today's code, which is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.frontend.graph import build_module
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import points_of
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.selection.measure import current_setting, static_digest
from ait_mlir.selection.meter import DeviceMeter
from ait_mlir.selection.select import needs_kernel
from ait_mlir.selection.shortlist import worth_timing
from ait_mlir.selection.tasks import Task, make_task
from ait_mlir.selection.timings import Record, Shipped, TimingCache, joined, read_shipped, write_shipped
from benchmarks.workloads import MODELS, Size
from tests.selection.cards import task_of

DTYPE = torch.float16


def tasks_of(name: str, sizes: Sequence[Size], target: Target) -> list[Task]:
    """The different tasks of one layer of a model, f16, with these sizes as hints."""
    module = build_module(MODELS[name].build(DTYPE, 1, sizes).outputs, "model")
    run_to_phase(module, "fused", CompileOptions(target.kind, target.arch))
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    tasks = [make_task(op) for graph in graphs for op in graph.block.ops if needs_kernel(op)]
    return list({task.key: task for task in tasks}.values())


def measure(name: str, sizes: list[Size], arch: str) -> None:
    """Choose kernels for one layer of a model; the times go to the cache."""
    start = time.perf_counter()
    module = build_module(MODELS[name].build(DTYPE, 1, sizes).outputs, "model")
    run_to_phase(module, "selected", CompileOptions("cuda", arch, measure=True))
    print(f"{name} {text_of(sizes)}: {time.perf_counter() - start:.1f} s", flush=True)


def build(name: str, sizes: list[Size], arch: str) -> None:
    """Compile the candidates for one layer of a model into the cache of objects."""
    start = time.perf_counter()
    target = Target("cuda", arch)
    listed = [(t, worth_timing(t, points_of(t.scope), target)) for t in tasks_of(name, sizes, target)]
    wanted = [(task, candidate) for task, candidates in listed for candidate in candidates if len(candidates) > 1]
    with DeviceMeter(target) as meter:
        meter.build(wanted)
        built = sum((p := meter.program(*pair)) is not None and p.path is not None for pair in wanted)
    print(f"{name} {text_of(sizes)}: {built} candidates built, {time.perf_counter() - start:.1f} s", flush=True)


def text_of(sizes: list[Size]) -> str:
    return " ".join(f"{b}x{s}" for b, s in sizes)


def records(cache: TimingCache) -> list[Record]:
    """The times in the cache, by op and point."""
    found: dict[tuple[str, tuple[int, ...]], Record] = {}
    for key, candidate, times in cache.known():
        record = found.setdefault(key, Record(*key, static_digest(*key), {}))
        found[key] = Record(record.op, record.point, record.static, {**record.times, candidate: times})
    return list(found.values())


def migrate(path: Path) -> None:
    """Give each record the current key of its task; the times stay. Run it after a change of the dialect, or of
    `structures.VERSION`, that gives the same task another key; `task_of` must still read the old keys.
    """
    shipped, command = read_shipped(path, any_structure=True), json.loads(path.read_text())["command"]
    keys = {op: task_of(op).key for op in shipped.by_op}
    moved = [replace(r, op=keys[r.op], static=static_digest(keys[r.op], r.point)) for r in shipped.records]
    write_shipped(path, replace(shipped, records=joined(moved, ())), command)
    print(f"{path}: {len(moved)} points, {sum(op != key for op, key in keys.items())} of {len(keys)} keys are new")


def sizes_of(name: str, text: str | None) -> list[list[Size]]:
    """The sizes to measure a model at, in groups: of each length, then all of them."""
    if text is None:
        sizes = [(b, s) for b in MODELS[name].batches for s in MODELS[name].lengths]
    else:
        sizes = [(int(b), int(s)) for b, s in (part.split("x") for part in text.split(","))]
    groups = [[size for size in sizes if size[1] == s] for s in sorted({s for _, s in sizes})]
    return groups if len(groups) == 1 else [*groups, sizes]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure kernels and write the times that the package brings along.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(MODELS)} (default: all)")
    parser.add_argument("--sizes", help="BATCHxLENGTH with commas between (default: the model's own)")
    parser.add_argument("-o", "--output", type=Path, help="the file to write, or to add to")
    parser.add_argument("--build", action="store_true", help="compile the candidates, time nothing")
    parser.add_argument("--migrate", action="store_true", help="write the file again with the keys of today")
    args = parser.parse_args()
    arch = default_arch("cuda")
    if args.build:
        for name in args.models or MODELS:
            build(name, sizes_of(name, args.sizes)[-1], arch)
        return 0
    if args.output is None:
        parser.error("-o says which file to write")
    if args.migrate:
        migrate(args.output)
        return 0
    setting = current_setting("cuda")
    before = read_shipped(args.output) if args.output.is_file() else None
    same = before.records if before is not None and before.setting == setting else ()
    command = f"python -m benchmarks.timings {' '.join(sys.argv[1:])}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timings.sqlite3"
        os.environ["AIT_TIMINGS"] = str(path)
        for name in args.models or MODELS:
            try:
                for sizes in sizes_of(name, args.sizes):
                    measure(name, sizes, arch)
            except AitError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
            new = records(TimingCache(path))
            kept = joined(same, new)
            write_shipped(args.output, Shipped(arch, setting, kept), command)
            print(f"{args.output}: {len(kept)} points, {len(new)} of them new, on {setting.card}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
