"""The gain of each optional pass: networks compiled without it, beside the whole pipeline, on a CUDA device.

    python -m benchmarks.passes                                # all networks, all passes that change them
    python -m benchmarks.passes bert resnet50 --only fuse-epilogue --only remove-copies
    python -m benchmarks.passes resnetv2_50 --only fuse-results --batch 32
    python -m benchmarks.passes bert --plan                    # without a card: how many launches

A row is a network and a pass: launches and time without it, over those with all passes. All artifacts of a network are
compiled from one text, with the same random weights and kernels chosen by estimate; replays of their CUDA graphs take
turns. A pass without which the plan is the same has no row. Where two passes can do the same work, leaving out one of
them costs little; the row without any optional pass shows what they are worth together.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from ait_mlir.driver import dim_info, program_of
from ait_mlir.errors import AitError
from ait_mlir.frontend.graph import build_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.passes.pipelines import OPTIMIZATIONS, OPTIONAL
from ait_mlir.runtime import Model
from ait_mlir.tools.commands.common import parse_dims
from ait_mlir.tools.report import report
from benchmarks import measure, record
from benchmarks.artifacts import compile_file
from benchmarks.launches import example_inputs
from benchmarks.models import DTYPES
from benchmarks.networks import NETWORKS, import_network, network, randomized
from benchmarks.workloads import MODELS

ALL = "all passes"
NONE = "no optional pass"
KNOWN = ("bert", "vit", "gpt2", "llama", "llama-decode", *NETWORKS)


def text_of(name: str, dtype: str, batch: int | None) -> str:
    """The text of a network before any pass. The only hints of its dims are `batch` (by default its first batch) and
    its first length.
    """
    if name in MODELS:
        entry = MODELS[name]
        size = batch or entry.batches[0], entry.lengths[0]
        return str(build_module(entry.build(DTYPES[dtype], min(entry.layers, 4), [size]).outputs)) + "\n"
    found = network(name)
    torch.manual_seed(0)
    module = randomized(found.make()).to(DTYPES[dtype])
    return str(import_network(name, found, module, [batch or found.batches[0]], DTYPES[dtype]).module) + "\n"


def compile_all(name: str, text: str, args: argparse.Namespace) -> dict[str, Path]:
    """An artifact for each set of passes that changes the plan; with `--plan`, the planned text instead."""
    folder = args.workdir / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "network.mlir"
    file.write_text(text, encoding="utf-8")
    left_out = {ALL: (), NONE: OPTIMIZATIONS} | {each: (each,) for each in args.only or OPTIONAL}
    suffix = "mlir" if args.plan else "ait"

    def compiled(which: str) -> tuple[str, Path]:
        output = folder / f"{which.replace(' ', '_')}.{suffix}"
        options = ["--streams", "1", "--weights", "random", "--arch", args.arch]
        options += ["--to", "planned"] if args.plan else []
        options += [part for each in left_out[which] for part in ("--without", each)]
        return which, compile_file(file, output, "cuda", *options)

    with ThreadPoolExecutor(args.jobs) as pool:
        return dict(pool.map(compiled, left_out))


def plan_of(path: Path) -> str:
    """The planned text of an artifact, or of a file."""
    if path.suffix == ".mlir":
        return path.read_text(encoding="utf-8")
    return Model(str(path), verify_weights=False).ir_text


def launches_of(text: str) -> tuple[int, dict[str, int]]:
    """The number of launches of a plan at its hints, and the hints."""
    module = parse_source(context(), SourceText("plan", text))
    program = program_of(module)
    dims = parse_dims([], list(map(dim_info, program.scope.dims)))
    return len(report(module, program, dims).launches), dims


def measure_network(name: str, args: argparse.Namespace) -> list[list[str]]:
    """A row for each pass that changes the plan of a network."""
    artifacts = compile_all(name, text_of(name, args.dtype, args.batch), args)
    plans = {which: plan_of(path) for which, path in artifacts.items()}
    acting = [which for which in artifacts if which == ALL or plans[which] != plans[ALL]]
    found = {which: launches_of(plans[which]) for which in acting}
    counts = {which: count for which, (count, _) in found.items()}
    seconds: dict[str, float] = {}
    if not args.plan:
        models = {which: Model(str(artifacts[which]), verify_weights=False) for which in acting}
        inputs = example_inputs(models[ALL], found[ALL][1])

        def run(which: str) -> measure.Run:
            outputs = models[which].run_with_tensors(inputs, sync=True)
            return lambda: models[which].run_with_tensors(inputs, outputs, sync=False, graph_mode=True)

        with measure.alone("cuda"):
            seconds = measure.median_seconds({which: run(which) for which in acting}, "cuda", args.budget, warmup=4)
    rows: list[list[str]] = []
    for which in acting:
        row = [name, which, str(counts[which]), f"{counts[which] / counts[ALL]:.2f}"]
        if seconds:
            row += [f"{seconds[which] * 1e6:.1f}", f"{seconds[which] / seconds[ALL]:.3f}"]
        rows.append(row)
        print("  ".join(row), flush=True)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"{', '.join(KNOWN)} (default: all), timm:MODEL")
    parser.add_argument("--only", action="append", choices=OPTIONAL, metavar="PASS", help="this pass (default: all)")
    parser.add_argument("--batch", type=int, help="default: the first one of each network")
    parser.add_argument("--dtype", choices=DTYPES, default="f16", help="default: %(default)s")
    parser.add_argument("--arch", default="", help="default: that of the card; sm_90a with --plan")
    parser.add_argument("--plan", action="store_true", help="only count launches, without a card")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilations at once")
    parser.add_argument("--workdir", type=Path, default=Path("build/benchmarks/passes"), help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args(argv)
    for name in set(args.networks) - set(KNOWN):
        network(name)  # refused before anything is measured
    if not args.plan and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; use --plan")
    args.arch = args.arch or ("sm_90a" if args.plan else "")
    rows: list[list[str]] = []
    for name in args.networks or KNOWN:
        rows += measure_network(name, args)
    heads = ["network", "without", "launches", "ratio"] + ([] if args.plan else ["us", "time ratio"])
    record.show(args.save, heads, rows, "cpu" if args.plan else "cuda")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
