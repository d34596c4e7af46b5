"""Quantised models beside ours in f16, and beside torchao with torch.compile, in one process.

    python -m benchmarks.quantised                                # BERT, ViT and layers of a Llama, the recipes of fp8
    python -m benchmarks.quantised bert --recipes w8a8,w8a16
    python -m benchmarks.quantised bert --device cpu --layers 1 --batch 1 --recipes w8a16

Weights and inputs are random. The examples that give the scales are one call at the smallest sizes, on the CPU. On a
GPU each side runs in a CUDA graph; torchao computes in bf16, which its scales by row need. `error` is the RMSE against
the results of f16, over their RMS; it is for finding faults, since random models have no accuracy to lose. `launches`
are those of a run. `--without` shows what a pass gains:

    python -m benchmarks.quantised bert --recipes fp8-static --batch 32 --without quantize-results
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from ait_mlir.errors import AitError
from ait_mlir.frontend import detect_target
from ait_mlir.importers.quantized.model import quantize_imported
from ait_mlir.importers.quantized.recipes import RECIPES, recipe_named
from ait_mlir.importers.torch.compiled import CompiledModule, build
from ait_mlir.importers.torch.program import Imported
from ait_mlir.options import CompileOptions
from benchmarks import measure, record
from benchmarks.imported import import_workload
from benchmarks.measure import Run
from benchmarks.models import captured, numbers
from benchmarks.shared import own_folder
from benchmarks.workloads import MODELS, Size, Workload

NAMES = ("bert", "vit", "llama")
FP8 = ("fp8", "fp8-static", "fp8-block")
HEADS = ["model", "batch x length", "recipe", "f16 ms", "ours ms", "f16 / ours", "torchao ms", "ours / torchao"]
HEADS += ["launches", "of f16", "error"]
DASH = "-"


def torchao_copy(recipe: str, peer: nn.Module) -> Any:
    """A copy of the peer in bf16 quantised by torchao with the recipe, compiled; None where it has no such recipe."""
    try:
        from torchao import quantization as ao
    except ImportError:
        return None
    configs: dict[str, Callable[[], Any]] = {
        "fp8": lambda: ao.Float8DynamicActivationFloat8WeightConfig(granularity=ao.PerRow()),
        "w8a8": lambda: ao.Int8DynamicActivationInt8WeightConfig(),
        "w8a16": lambda: ao.Int8WeightOnlyConfig(),
    }
    if recipe not in configs:
        return None
    made = copy.deepcopy(peer).bfloat16()
    ao.quantize_(made, configs[recipe]())
    torch.compiler.reset()
    return torch.compile(made, dynamic=False)


def compiled(imported: Imported, args: argparse.Namespace, title: str) -> CompiledModule:
    options = CompileOptions(args.device, measure=args.measure, budget=args.tuning, without=args.without)
    made = build(imported, options, workdir=args.workdir / title)
    if args.keep:
        made.save(args.workdir / f"{title}.ait")  # for benchmarks/launches.py
    return made


def run_of(made: CompiledModule, inputs: Sequence[torch.Tensor], device: str) -> tuple[Run, torch.Tensor]:
    """A call at these inputs, and its result, which each call writes again."""
    named = dict(zip((item.name for item in made.imported.inputs.tensors), inputs, strict=True))
    outputs = made.model.run_with_tensors(named, sync=True)

    def run() -> Any:
        on_gpu = device == "cuda"
        return made.model.run_with_tensors(named, outputs, sync=not on_gpu, graph_mode=on_gpu)

    return run, outputs[made.imported.outputs[0][1]]


def error_of(result: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((result.double() - wanted.double()).pow(2).mean().sqrt() / wanted.double().pow(2).mean().sqrt())


def measure_model(name: str, args: argparse.Namespace) -> list[list[str]]:
    """The rows of a model: each size with each recipe."""
    entry, dtype = MODELS[name], torch.float16
    sizes: list[Size] = [(b, s) for s in entry.lengths for b in args.batch or entry.batches]
    torch.manual_seed(0)
    work: Workload = entry.build(dtype, args.layers or entry.layers, sizes)
    title = f"{name.replace('-', '_')}_f16"
    plain = compiled(import_workload(title, work, sizes), args, title)
    few = work.arguments(work.inputs((1, min(entry.lengths)), "cpu"))
    made: dict[str, CompiledModule] = {}
    for recipe in args.recipes:
        label = f"{title}_{recipe.replace('-', '_')}"
        imported = import_workload(label, work, sizes)
        found = quantize_imported(imported, [(tuple(few), {})], recipe_named(recipe))
        made[recipe] = compiled(found.imported, args, label)
        print(f"{name} {recipe}: compiled", flush=True)
    peer, rows = work.peer.to(args.device), list[list[str]]()
    for recipe, ours in made.items():
        theirs = torchao_copy(recipe, peer) if args.device == "cuda" else None
        for size in sizes:
            arguments = work.arguments(work.inputs(size, args.device))
            base, wanted = run_of(plain, arguments, args.device)
            run, result = run_of(ours, arguments, args.device)
            runs = {"f16": base, "ours": run}
            for each in runs.values():
                each()
            if theirs is not None:
                try:
                    halves = [t.bfloat16() if t.is_floating_point() else t for t in arguments]
                    runs["torchao"] = captured(lambda module=theirs, given=halves: module(*given))
                except Exception as error:  # a peer that cannot run is no reason to stop
                    print(f"torchao {recipe}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            with measure.alone(args.device):
                seconds = measure.median_seconds(runs, args.device, args.budget)
            counts = [m.model.ir_text.count("ait_rt.launch") for m in (ours, plain)]
            rows.append([
                name, f"{size[0]} x {size[1]}", recipe,
                f"{seconds['f16'] * 1e3:.3f}", f"{seconds['ours'] * 1e3:.3f}",
                f"{seconds['f16'] / seconds['ours']:.2f}",
                f"{seconds['torchao'] * 1e3:.3f}" if "torchao" in seconds else DASH,
                f"{seconds['ours'] / seconds['torchao']:.2f}" if "torchao" in seconds else DASH,
                *map(str, counts), f"{error_of(result, wanted):.3f}",
            ])  # fmt: skip
            print("  ".join(rows[-1]), flush=True)
    return rows


def recipes(text: str) -> tuple[str, ...]:
    """`fp8,w8a8`"""
    if unknown := set(text.split(",")) - set(RECIPES):
        raise argparse.ArgumentTypeError(f"no recipe {', '.join(sorted(unknown))}")
    return tuple(text.split(","))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantised", description="Quantised models beside f16.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--recipes", type=recipes, default=FP8, help=f"default: {','.join(FP8)}")
    parser.add_argument("--batch", type=numbers, help="batch sizes, such as 1,32 (default: the model's own)")
    parser.add_argument("--layers", type=int, help="layers of the models (default: the model's own)")
    parser.add_argument("--without", action="append", default=[], metavar="PASS", help="leave out a pass")
    parser.add_argument("--keep", action="store_true", help="save the artifacts in WORKDIR")
    parser.add_argument("--device", choices=["cuda", "cpu"], default=detect_target().name())
    measure.add_options(parser)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--workdir", default="build/benchmarks/quantised", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    if unknown := set(args.models) - set(NAMES):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    args.workdir = own_folder(args.workdir)
    rows: list[list[str]] = []
    with torch.inference_mode():
        for name in args.models or NAMES:
            rows += measure_model(name, args)
    record.show(args.save, HEADS, rows, args.device)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
