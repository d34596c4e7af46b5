"""The memory planner: the arena over its lower bound and the time, by strategy.

    python -m benchmarks.planner                                  # networks of timm at batch 1, for the CPU
    python -m benchmarks.planner --instances FOLDER               # and the instances of google/minimalloc in a folder
    python -m benchmarks.planner --instances FOLDER --networks '' --strategies greedy,search,exact --seconds 10

The lower bound is the most bytes live at one position. Instances are files `NAME.CAPACITY.csv` with the columns
`id,lower,upper,size`; a buffer lives in [lower, upper), and all fit into CAPACITY bytes. For them, the arena over the
capacity is printed, too. Times are seconds on the wall, which limit a search, and of the processor: fewer where others
use it, more where a solver has threads.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Scope, const
from ait_mlir.driver import program_of, run_to_phase
from ait_mlir.importers.torch import from_torch
from ait_mlir.passes.checks.memory_plan import verify
from ait_mlir.passes.lifetimes import lifetimes
from ait_mlir.passes.memory import Buffer
from ait_mlir.passes.plan_memory import STRATEGIES, planned_buffers, planner_of
from benchmarks import record
from benchmarks.networks import timm_model

NETWORKS = {
    "resnet50": "resnet50",
    "resnext50": "resnext50_32x4d",
    "convnext": "convnext_tiny",
    "swin": "swin_tiny_patch4_window7_224",
}


def instance(path: Path) -> list[Buffer]:
    """The buffers of a file; `SystemExit` for a row that is not `id,lower,upper,size`."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        try:
            return [Buffer(r["id"], int(r["lower"]), int(r["upper"]), const(int(r["size"]))) for r in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"{path}:{rows.line_num}: {error}; expected columns id,lower,upper,size") from None


def network(name: str) -> ProgramOp:
    """The program of a network before its memory is planned."""
    module = timm_model(NETWORKS[name]).make().eval()
    imported = from_torch(module, (torch.randn(1, 3, 224, 224),), name=name)
    return program_of(run_to_phase(imported.module, "bufferized", known=imported.constants.keys()))


def row(name: str, buffers: list[Buffer], scope: Scope, strategy: str, seconds: float, capacity: int = 0) -> list[str]:
    """Plan and verify; a row of the table."""
    start, cpu = time.perf_counter(), time.process_time()
    made = planner_of(strategy, seconds)(buffers, scope)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    if problems := verify(buffers, made.offsets, made.arena, scope):
        raise SystemExit(f"{name}, {strategy}: {problems[0]}")
    arena = made.arena.evaluate(scope.maximum_env())
    over = f"{arena / capacity:.3f}" if capacity else "-"
    state = "optimal" if made.optimal else "time limit" if made.stopped else "-"
    cells = [name, str(len(buffers)), strategy, str(arena), f"{arena / made.peak:.3f}", over]
    cells += [f"{took:.3f}", f"{cpu:.3f}", state]
    print("  ".join(cells), flush=True)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description="The arena over its lower bound and the time, by strategy.")
    parser.add_argument("--instances", type=Path, help="a folder with files NAME.CAPACITY.csv")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="default: %(default)s")
    parser.add_argument("--strategies", default="naive,greedy,search", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=10.0, help="the time limit (default: %(default)s)")
    record.add_save(parser)
    args = parser.parse_args()
    names, strategies = [n for n in args.networks.split(",") if n], args.strategies.split(",")
    if unknown := [n for n in names if n not in NETWORKS] + [s for s in strategies if s not in STRATEGIES]:
        parser.error(f"no {unknown[0]}; there are {', '.join(NETWORKS)} and {', '.join(STRATEGIES)}")
    files = sorted(args.instances.glob("*.*.csv")) if args.instances else []
    if args.instances and not files:
        parser.error(f"no files NAME.CAPACITY.csv in {args.instances}")
    rows: list[list[str]] = []
    for path in files:
        name, capacity = path.stem.rsplit(".", 1)
        for strategy in strategies:
            rows.append(row(name, instance(path), Scope(), strategy, args.seconds, int(capacity)))
    for name in names:
        program = network(name)
        buffers = planned_buffers(program, lifetimes(program))
        for strategy in strategies:
            rows.append(row(name, buffers, program.scope, strategy, args.seconds))
    heads = ["graph", "buffers", "strategy", "arena", "/ bound", "/ capacity", "seconds", "CPU seconds", "end"]
    record.show(args.save, heads, rows, "cpu")
    return 0


if __name__ == "__main__":
    sys.exit(main())
