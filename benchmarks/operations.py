"""Single operations beside PyTorch: a table of them, or operations drawn at random, with neighbours.

    python -m benchmarks.operations --table                           # every operation of the table
    python -m benchmarks.operations --table logsumexp "softmax over"  # those whose names contain a word
    python -m benchmarks.operations --seed 1 --count 100 --rows seed-1.jsonl --seconds 500  # is resumed
    python -m benchmarks.operations --seed 1 --count 100 --shard 2/3  # every third case: for several machines
    python -m benchmarks.operations --seed 1 --device cpu             # small ones, beside eager
    python -m benchmarks.operations --table index_add --any-order     # sums in any order, as PyTorch adds

A case is an operation as a module of its own, imported and compiled as a user does. Ours, eager and torch.compile each
replay a CUDA graph, in turns; medians. On the CPU the peer is eager. First many processes compile the cases, ours and
those of torch.compile; then one process for each card runs one case after the other. A
result is wrong if its error against float64 exceeds that of eager by more than `benchmarks/measure.py` allows, or if
integers differ.

The floor of a case is its bytes (inputs, weights and results, each once) over the rate of a large copy, or the flops of
its products over the rate of a large product. A case that fails, whose result is wrong or that is slower than `--limit`
seconds does not end the others. The table has the worst rows first.
"""

from __future__ import annotations

import argparse
import copy
import gc
import hashlib
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ait_mlir import driver
from ait_mlir.errors import AitError
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.compiled import build
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model, artifact
from ait_mlir.tools.report import report
from benchmarks import measure, record
from benchmarks.models import MODES, captured, peer_runs, widened
from benchmarks.operation_cases import TABLE, Case
from benchmarks.random_operations import operations
from benchmarks.shared import Done, Results, Row, own_folder
from benchmarks.workers import outcomes

HEADS = ["operation", "ours us", "eager us", "compile us", "ours / best", "floor us", "ours / floor", "launches"]
HEADS += ["max err / eager's", "rmse / eager's"]


@dataclass(frozen=True)
class Plan:
    """How cases are compiled and timed; a process gets it once. `drawn` is a seed, a count, or None for the table."""

    drawn: tuple[int, int] | None
    device: str
    folder: Path
    measure: Any
    tuning: float | None
    deterministic: bool
    peers: tuple[str, ...]
    budget: float

    def cases(self) -> dict[str, Case]:
        if self.drawn is None:
            return {case.name: case for case in TABLE}
        seed, count = self.drawn
        found = operations(seed, count, small=self.device == "cpu")
        return {f"{seed}.{i} {case.name}": case for i, case in enumerate(found)}

    def options(self) -> CompileOptions:
        return CompileOptions(self.device, measure=self.measure, budget=self.tuning, deterministic=self.deterministic)

    def file(self, name: str) -> Path:
        """The artifact of a case."""
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.ait"


@dataclass(frozen=True)
class Compiled:
    """What timing needs of a compiled case: for each input of the artifact the argument, and the outputs in order."""

    inputs: dict[str, int]
    outputs: list[str]
    launches: int


def use_card(card: int) -> None:
    """Let this process see one of the visible cards, before it uses any."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[card] if visible else str(card)


# ** compiling: many processes **


def start_compiling(plan: Plan, card: int) -> Callable[[str], None]:
    """The function that compiles a case, for one of many processes."""
    torch.set_num_threads(1)
    use_card(card)
    cases = plan.cases()
    return lambda name: compile_case(plan, name, cases[name])


def compile_case(plan: Plan, name: str, case: Case) -> None:
    imported = from_torch(case.module(), tuple(given.example() for given in case.inputs), name="operation")
    result = build(imported, plan.options())
    result.save(plan.file(name))
    if wrong := [value for kind, value in imported.outputs if kind != "output"]:
        raise AitError(f"a result is no tensor: {wrong[0]}")
    made = Compiled(
        {item.name: item.leaf for item in imported.inputs.tensors},
        [value for _, value in imported.outputs],
        launches_of(plan.file(name)),
    )
    plan.file(name).with_suffix(".json").write_text(json.dumps(vars(made)), encoding="utf-8")


def launches_of(file: Path) -> int:
    """The launches of a run."""
    text = artifact.read(str(file), verify_weights=False).ir_text
    module = parse_source(context(), SourceText(str(file), text))
    return len(report(module, driver.program_of(module), {}).launches)


def start_compiling_peers(plan: Plan, card: int) -> Callable[[str], None]:
    """The function that fills the caches of torch.compile with a case."""
    torch.set_num_threads(1)
    use_card(card)
    torch.backends.mha.set_fastpath_enabled(False)
    cases = plan.cases()

    def work(name: str) -> None:
        case = cases[name]
        with torch.inference_mode():
            torch.compiler.reset()
            torch.compile(case.module().to("cuda"), mode=MODES["compile"], dynamic=False)(*case.values("cuda"))
        gc.collect()
        torch.cuda.empty_cache()

    return work


# ** timing: one process for each card **


def start_timing(plan: Plan, card: int) -> Callable[[str], Row]:
    """The function that runs and times a compiled case."""
    use_card(card)
    torch.backends.mha.set_fastpath_enabled(False)  # it computes weights that nobody reads
    cases = plan.cases()
    with measure.alone(plan.device):
        ceilings = measure.ceilings(plan.device, torch.float16 if plan.device == "cuda" else torch.float32)

    def work(name: str) -> Row:
        try:
            with torch.inference_mode(), measure.alone(plan.device):
                return compare(plan, name, cases[name], ceilings)
        finally:
            gc.collect()
            if plan.device == "cuda":
                torch.cuda.empty_cache()

    return work


def compare(plan: Plan, name: str, case: Case, ceilings: measure.Ceilings) -> Row:
    """Compare the results of a case with PyTorch's, then the times."""
    on_gpu = plan.device == "cuda"
    made = Compiled(**json.loads(plan.file(name).with_suffix(".json").read_text(encoding="utf-8")))
    module, values = case.module().to(plan.device), case.values(plan.device)
    with FlopCounterMode(display=False) as counter:
        eager = listed(module(*values))
    with Model(plan.file(name)) as model:
        given = {n: values[leaf] for n, leaf in made.inputs.items()}
        outputs = model.run_with_tensors(given, sync=True)
        results = [outputs[n] for n in made.outputs]

        def call() -> Any:
            return model.run_with_tensors(given, outputs, sync=not on_gpu)

        ours = captured(call) if on_gpu else call
        for result in outputs.values():
            result.fill_(float("nan") if result.is_floating_point() else 1)
        ours()
        if on_gpu:
            torch.cuda.synchronize()
        accuracy = judged(case, module, values, results, eager)
        runs = peer_runs(module, values, plan.device, plan.peers)
        seconds = measure.median_seconds({"ours": ours, **runs}, plan.device, plan.budget)
        del ours
    moved = case.moved(eager, sum(p.nbytes for p in module.parameters()))
    floor = ceilings.floor(case.work * counter.get_total_flops(), moved)
    best = min((s, n) for n, s in seconds.items() if n != "ours")[1]
    ratio = seconds["ours"] / seconds[best]
    cells = [
        name,
        *(f"{seconds[n] * 1e6:.1f}" if n in seconds else "-" for n in ("ours", "eager", "compile")),
        f"{ratio:.2f} ({best})",
        f"{floor * 1e6:.1f}",
        f"{seconds['ours'] / floor:.2f}",
        str(made.launches),
        f"{accuracy.max_ratio:.2f}",
        f"{accuracy.rmse_ratio:.2f}" + ("" if accuracy.passed else " FAILED"),
    ]
    return Row(cells, ratio, accuracy.passed)


def listed(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def judged(
    case: Case, module: torch.nn.Module, values: Sequence[torch.Tensor], ours: Iterable[Any], eager: Iterable[Any]
) -> measure.Accuracy:
    """The worst error of the results, beside eager's; against float32 where float64 does not fit or does not exist."""
    try:
        inputs = widened(values)
        exact = listed(copy.deepcopy(module).double()(*inputs))
    except RuntimeError:
        torch.cuda.empty_cache()
        inputs = [t.float() if t.is_floating_point() else t for t in values]
        exact = listed(copy.deepcopy(module).float()(*inputs))
    found = [case.seen(inputs, results) for results in (list(ours), list(eager), exact)]
    errors = [error_of(*results, dtype=case.dtype) for results in zip(*found, strict=True)]
    return measure.Accuracy(*(max(getattr(e, name) for e in errors) for name in vars(errors[0])))


def error_of(ours: Any, eager: Any, exact: Any, dtype: torch.dtype) -> measure.Accuracy:
    if ours.is_floating_point():
        dtype = eager.dtype if eager.dtype != torch.float64 else dtype  # elements of the widened input
        return measure.accuracy(ours.to(dtype), eager.to(dtype), exact)
    wrong = 0.0 if torch.equal(ours, eager) or torch.equal(ours, exact) else math.inf
    return measure.Accuracy(wrong, wrong, wrong)


# ** the command **


def main() -> int:
    args = parse_arguments()
    os.environ.update(SETTINGS)
    plan = Plan(
        None if args.table is not None else (args.seed, args.count),
        args.device,
        own_folder(args.workdir),
        args.measure,
        args.tuning,
        not args.any_order,
        args.peers,
        args.budget,
    )
    index, shards = args.shard
    words = args.table or []
    names = [n for n in list(plan.cases())[index - 1 :: shards] if not words or any(word in n for word in words)]
    if args.only is not None:
        names = [n for n in names if n.partition(" ")[0].partition(".")[2] in {str(i) for i in args.only}]
    if not names:
        raise AitError("no operation has such a name")
    with tempfile.TemporaryDirectory() as folder:
        results = Results(args.rows or Path(folder) / "rows.jsonl")
        measure_all(plan, names, results, args)
        return print_table(names, results, args)


SETTINGS = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_AUTOTUNE_LOCAL_CACHE": "0"}
"""For PyTorch in the processes: many compile at a time, and the process that times also tunes, alone on its card."""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Single operations beside PyTorch.")
    parser.add_argument("--table", nargs="*", metavar="WORD", help="the table, or its operations with a word")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn (default: %(default)s)")
    parser.add_argument("--count", type=int, default=100, help="how many are drawn (default: %(default)s)")
    parser.add_argument("--only", type=int, action="append", metavar="N", help="case N of the seed alone, from 0 on")
    parser.add_argument("--shard", type=shard, default=(1, 1), metavar="I/N", help="every N-th case, from the I-th on")
    parser.add_argument("--device", "--target", choices=["cuda", "cpu"], default="cuda", help="default: %(default)s")
    parser.add_argument("--cards", type=int, default=1, help="cards that time, each a case (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="processes that compile (default: the cores)")
    parser.add_argument("--batch", type=int, default=64, help="cases compiled before they are timed, for each card")
    parser.add_argument("--limit", type=float, default=150, help="seconds for a step of a case (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="compile no further batch after so many (default: measure all)")
    parser.add_argument("--any-order", action="store_true", help="compile with deterministic=False, as PyTorch adds")
    parser.add_argument("--peers", default="eager,compile", help="what runs beside ours (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep results; what the file has is not done again")
    parser.add_argument("--workdir", default="build/benchmarks/operations", help="default: %(default)s")
    measure.add_options(parser)
    record.add_save(parser)
    args = parser.parse_args()
    named = args.peers.split(",")
    if wrong := [p for p in named if p not in ("eager", "compile")]:
        parser.error(f"no peer {wrong[0]}; there are eager, compile")
    args.peers = tuple(p for p in named if p == "eager" or args.device == "cuda")
    if not args.peers:
        parser.error("the CPU has one peer, eager")
    if args.device == "cpu":
        args.cards = 1
    args.jobs = len(os.sched_getaffinity(0)) if args.jobs is None else args.jobs
    if min(args.count, args.cards, args.jobs, args.batch) < 1:
        parser.error("--count, --cards, --jobs and --batch are at least 1")
    return args


def shard(text: str) -> tuple[int, int]:
    """`2/3`"""
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, such as 2/3, found {text!r}")
    return int(first), int(second)


def measure_all(plan: Plan, names: Sequence[str], results: Results, args: argparse.Namespace) -> None:
    """Compile and time what has no result yet, a batch after the other."""
    start = time.monotonic()
    done = {d.network for d in results.read()}
    left = [name for name in names if name not in done]
    size = args.batch * args.cards
    for first in range(0, len(left), size):
        if args.seconds is not None and time.monotonic() - start > args.seconds:
            print(f"{args.seconds:g} s are over: {len(left) - first} cases are left", flush=True)
            return
        measure_batch(plan, left[first : first + size], results, args)


def measure_batch(plan: Plan, names: Sequence[str], results: Results, args: argparse.Namespace) -> None:
    """The stages of a batch: compile ours, compile the peers, time."""
    device = record.machine(plan.device)
    timers = [(plan, card) for card in range(args.cards)]
    compilers = [(plan, i % args.cards) for i in range(args.jobs)]
    good = list[str]()
    begin = time.monotonic()
    for name, _, error in outcomes(names, start_compiling, compilers, args.limit):
        if error:
            results.add(Done(name, device, [], f"compile: {error}"))
        else:
            good.append(name)
    print(f"{len(good)} of {len(names)} compiled in {time.monotonic() - begin:.0f} s", flush=True)
    if "compile" in args.peers:
        begin = time.monotonic()
        for name, _, error in outcomes(good, start_compiling_peers, compilers, args.limit):
            if error:
                print(f"torch.compile: {name}: {error.splitlines()[0][:150]}", flush=True)
        print(f"torch.compile: {time.monotonic() - begin:.0f} s", flush=True)
    begin = time.monotonic()
    for name, row, error in outcomes(good, start_timing, timers, args.limit):
        results.add(Done(name, device, [row] if row else [], error))
        print("  ".join(row.cells) if row else f"{name}: {error.splitlines()[0][:150]}", flush=True)
    print(f"timed in {time.monotonic() - begin:.0f} s", flush=True)


def print_table(names: Sequence[str], results: Results, args: argparse.Namespace) -> int:
    """Print the rows, the worst first, and a summary; returns the exit code."""
    found = [done for done in results.read() if done.network in set(names)]
    rows = sorted((row for done in found for row in done.rows), key=lambda row: -row.ratio)
    if rows:
        record.show(args.save, HEADS, [row.cells for row in rows], args.device)
        print(summary(rows))
    failed = [done for done in found if done.error]
    for done in failed:
        print(f"failed: {done.network}: {done.error.splitlines()[0]}")
    missing = len(set(names) - {done.network for done in found})
    if missing:
        print(f"not measured: {missing} cases")
    return 1 if failed or missing or not all(row.passed for row in rows) else 0


def summary(rows: Sequence[Row]) -> str:
    """The geometric mean of the ratios, and how many exceed limits."""
    ratios = [row.ratio for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    above = ", ".join(f"{sum(r > limit for r in ratios)} above {limit:g}" for limit in (1, 1.1, 1.2, 2))
    wrong = sum(not row.passed for row in rows)
    return (
        f"ours / best peer of {len(rows)} operations: geometric mean {mean:.3f}, largest {max(ratios):.2f}; {above}; "
        f"{wrong} wrong"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
