"""Whole models: ours beside PyTorch, same weights and inputs, in one process.

    python benchmarks/models.py                                  # all models, each at its usual sizes
    python benchmarks/models.py bert vit --batch 1,32
    python benchmarks/models.py bert --device cpu --dtype f32 --seq 128 --batch 1
    python benchmarks/models.py --imported                       # ours is the peer's module, imported

One artifact serves all sizes: its batch and length are dynamic. On the GPU the peer is the best of: eager in a CUDA
graph, torch.compile in a CUDA graph, and with --max-autotune torch.compile with that mode in a CUDA graph; ours replays
its own graph. On the CPU the peer is eager. Times are medians over interleaved rounds. "floor" is the shortest time
that the flops and bytes of the model can take at the rates of a large matrix product and a large copy in the same run;
"of floor" is the share of our time that it makes up; on the CPU the product is PyTorch's, which ours passes on a matrix
unit, so that the share can be above 100 %. Errors are ours over eager's, both against float64. The length of
llama-decode is that of its cache.
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import compile_model, detect_target
from ait_mlir.importers.torch.compiled import build
from ait_mlir.options import CompileOptions
from benchmarks import measure, record
from benchmarks.imported import NOT_IMPORTED, import_workload
from benchmarks.measure import Run
from benchmarks.shared import own_folder
from benchmarks.workloads import MODELS, Size, Workload

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
MODES = {"eager": None, "compile": "default", "autotune": "max-autotune-no-cudagraphs"}
"""The ways to run the peer, and what torch.compile is told."""


@dataclass(frozen=True)
class Row:
    """The results at one size; times in seconds, by name of the side."""

    model: str
    size: Size
    seconds: dict[str, float]
    floor: float
    accuracy: measure.Accuracy

    @property
    def best(self) -> str:
        """The fastest peer."""
        return min((s, name) for name, s in self.seconds.items() if name != "ours")[1]

    @property
    def ratio(self) -> float:
        """Our time over the best peer's."""
        return self.seconds["ours"] / self.seconds[self.best]

    def cells(self, peers: Sequence[str]) -> list[str]:
        return [
            self.model,
            f"{self.size[0]} x {self.size[1]}",
            *(f"{self.seconds[name] * 1e3:.3f}" if name in self.seconds else "-" for name in ("ours", *peers)),
            f"{self.ratio:.2f} ({self.best})",
            f"{self.floor * 1e3:.3f}",
            f"{self.floor / self.seconds['ours']:.0%}",
            f"{self.accuracy.max_ratio:.2f}",
            f"{self.accuracy.rmse_ratio:.2f}" + ("" if self.accuracy.passed else " FAILED"),
        ]


@dataclass(frozen=True)
class Ours:
    """Our side, loaded, and the names of its result and, if they differ from the workload's, of its inputs."""

    model: Any
    inputs: Sequence[str] | None
    output: str


def captured(run: Run) -> Run:
    """A function that replays `run` as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def peer_runs(module: nn.Module, arguments: list[torch.Tensor], device: str, peers: Sequence[str]) -> dict[str, Run]:
    """The ways in which a user of PyTorch would run the model; a way that fails is left out, and its error printed."""
    if device == "cpu":
        return {"eager": lambda: module(*arguments)}
    runs: dict[str, Run] = {}
    for name in peers:
        try:
            torch.compiler.reset()
            run = module if name == "eager" else torch.compile(module, mode=MODES[name], dynamic=False)
            runs[name] = captured(lambda run=run: run(*arguments))
        except Exception as error:  # a peer that cannot run is no reason to stop
            print(f"torch {name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
    if not runs:
        raise SystemExit("error: PyTorch runs this model in no way; see above")
    return runs


def on(device: str, work: Workload) -> tuple[nn.Module, nn.Module]:
    """The peer on the device, and a copy of it in float64."""
    peer = work.peer.to(device)
    return peer, copy.deepcopy(peer).double()


def widened(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same values in float64; integers are unchanged."""
    return [t.double() if t.is_floating_point() else t.clone() for t in tensors]


def measure_size(
    name: str, ours: Ours, work: Workload, sides: tuple[nn.Module, nn.Module], size: Size, args: Any
) -> Row:
    """Compare the results at one size, then the times."""
    peer, exact = sides
    on_gpu = args.device == "cuda"
    made = work.inputs(size, args.device)
    arguments = work.arguments(made)
    eager = peer(*arguments)
    inputs = dict(zip(ours.inputs or made, made.values(), strict=True))
    outputs = ours.model.run_with_tensors(inputs, sync=True)
    outputs[ours.output].fill_(float("nan"))

    def run() -> Any:
        return ours.model.run_with_tensors(inputs, outputs, sync=not on_gpu, graph_mode=on_gpu)

    run()
    ours.model.synchronize(torch.cuda.current_stream().cuda_stream if on_gpu else None)
    accuracy = measure.accuracy(outputs[ours.output], eager, exact(*widened(arguments)))
    del eager
    runs = peer_runs(peer, arguments, args.device, args.peers)
    seconds = measure.median_seconds({"ours": run, **runs}, args.device, args.budget)
    return Row(name, size, seconds, args.ceilings.floor(work.flops(size), work.bytes(size)), accuracy)


def compiled(name: str, work: Workload, sizes: Sequence[Size], args: argparse.Namespace) -> Ours:
    """Our side: the graph written by hand with the weights of the peer, or the peer imported."""
    start = time.perf_counter()
    title = f"{name}_{args.dtype}".replace("-", "_")
    if args.imported:
        imported = import_workload(title, work, sizes)
        took = f"exported and imported in {time.perf_counter() - start:.1f} s, "
        start = time.perf_counter()
        workdir = args.workdir / f"{title}_imported"
        options = CompileOptions(args.device, measure=args.measure, budget=args.tuning)
        result = build(imported, options, workdir=workdir)
        ours = Ours(result.model, [item.name for item in imported.inputs.tensors], imported.outputs[0][1])
    else:
        weights, took = work.peer.state_dict(), ""
        model = compile_model(
            work.outputs, args.device, args.workdir, title, constants=weights, measure=args.measure, budget=args.tuning
        )
        ours = Ours(model, None, work.outputs[0].name)
    print(f"{name}: {took}compiled in {time.perf_counter() - start:.1f} s", flush=True)
    return ours


def measure_model(name: str, args: argparse.Namespace) -> list[Row]:
    """All sizes of one model."""
    entry = MODELS[name]
    lengths = args.seq if args.seq and entry.any_length else entry.lengths
    sizes = [(b, s) for s in lengths for b in args.batch or entry.batches]
    work = entry.build(DTYPES[args.dtype], args.layers or entry.layers, sizes)
    ours = compiled(name, work, sizes, args)
    if args.compile_only:
        return []
    sides = on(args.device, work)
    rows: list[Row] = []
    for size in sizes:
        rows.append(measure_size(name, ours, work, sides, size, args))
        print("  ".join(rows[-1].cells(args.peers)), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def numbers(text: str) -> tuple[int, ...]:
    """`1,32`"""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers with commas between them, such as 1,32, found {text!r}"
        ) from None


def usable(peer: str, args: argparse.Namespace) -> bool:
    return peer == "eager" or (args.device == "cuda" and (peer != "autotune" or args.max_autotune))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ours beside PyTorch: times, share of the floor, errors.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(MODELS)} (default: all)")
    parser.add_argument("--batch", type=numbers, help="batch sizes, such as 1,32 (default: the model's own)")
    parser.add_argument("--seq", type=numbers, help="lengths, such as 128,384 (default: the model's own)")
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], help="default: cuda where there is a CUDA device, else cpu"
    )
    parser.add_argument("--dtype", choices=DTYPES, help="default: f16 on the GPU, f32 on the CPU")
    parser.add_argument("--layers", type=int, help="layers of the models (default: the model's own)")
    parser.add_argument("--max-autotune", action="store_true", help="also time torch.compile(mode='max-autotune')")
    measure.add_options(parser)
    parser.add_argument("--imported", action="store_true", help="ours is the peer's own module, imported")
    parser.add_argument("--compile-only", action="store_true", help="make the artifacts and stop")
    parser.add_argument(
        "--budget", type=float, default=2.0, help="seconds to spend on each time (default: %(default)s)"
    )
    parser.add_argument("--workdir", default="build/benchmarks", help="where artifacts go (default: %(default)s)")
    record.add_save(parser)
    args = parser.parse_args()
    args.device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    args.dtype = args.dtype or ("f16" if args.device == "cuda" else "f32")
    args.models = args.models or [name for name in MODELS if not (args.imported and name in NOT_IMPORTED)]
    args.peers = [p for p in MODES if usable(p, args)]
    args.workdir = own_folder(args.workdir)
    if unknown := set(args.models) - set(MODELS):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    if args.imported and (refused := [name for name in args.models if name in NOT_IMPORTED]):
        parser.error(f"{refused[0]} is not imported: {NOT_IMPORTED[refused[0]]}")
    if args.device == "cuda" and not args.compile_only and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; use --device cpu")
    return args


def main() -> int:
    args = parse_arguments()
    print(f"{args.dtype}, {device_name(args)}, torch {torch.__version__}")
    if not args.compile_only:
        args.ceilings = measure.ceilings(args.device, DTYPES[args.dtype])
        print(f"ceilings: {args.ceilings.flops / 1e12:.2f} TFLOP/s, {args.ceilings.bytes / 1e9:.0f} GB/s", flush=True)
    rows: list[Row] = []
    failed: list[str] = []
    with torch.inference_mode():
        for name in args.models:
            try:
                rows += measure_model(name, args)
            except AitError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
                failed.append(name)
    if rows:
        heads = ["model", "batch x length", "ours ms", *(f"{p} ms" for p in args.peers), "ours / best peer"]
        heads += ["floor ms", "of floor", "max err / eager's", "rmse / eager's"]
        limits = f"{args.ceilings.flops / 1e12:.0f} TFLOP/s, {args.ceilings.bytes / 1e9:.0f} GB/s"
        record.show(args.save, heads, [row.cells(args.peers) for row in rows], args.device, limits)
        mean = math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))
        largest = max(row.ratio for row in rows)
        print(f"ours / best peer of {len(rows)} rows: geometric mean {mean:.3f}, largest {largest:.2f}")
    return 1 if failed or any(not row.accuracy.passed for row in rows) else 0


def device_name(args: argparse.Namespace) -> str:
    if args.device == "cuda":
        return torch.cuda.get_device_name() if torch.cuda.is_available() else "no card"
    return f"{len(os.sched_getaffinity(0))} CPUs, {torch.get_num_threads()} torch threads"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
