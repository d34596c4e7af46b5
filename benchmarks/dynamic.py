"""One artifact with a dynamic batch beside artifacts made for each batch: same model, weights and inputs.

    python -m benchmarks.dynamic bert --seq 128 --batch 1,3,8,17,32 --hints 1,32 --measure

Times are medians over interleaved rounds of graph replays; the last column is the dynamic artifact's time over that of
the other.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dims import Dim, Scope
from ait_mlir.driver import compile_module
from ait_mlir.errors import AitError
from ait_mlir.frontend.compile import bind_constants
from ait_mlir.frontend.graph import bound_data, build_module
from ait_mlir.lowering.points import substituted
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from benchmarks import measure, record
from benchmarks.shared import own_folder
from benchmarks.workloads import MODELS


def artifact(work: Any, name: str, batch: int | None, hints: list[int], args: argparse.Namespace) -> Model:
    """The model with a dynamic batch, or made for one batch."""
    start = time.perf_counter()
    module = build_module(work.outputs, "model")
    constants = bind_constants(module, bound_data(work.outputs), work.peer.state_dict())
    (graph,) = (op for op in module.ops if isinstance(op, GraphOp))
    if batch is None:
        dims = [Dim(d.name, d.lo, d.hi, tuple(hints)) if d.name == "batch" else d for d in graph.scope.dims]
        new = substituted(graph, {}, Scope(dims))
    else:
        others = Scope(d for d in graph.scope.dims if d.name != "batch")
        new = substituted(graph, {"batch": batch}, others)
    module.body.block.insert_op_before(new, graph)
    graph.detach()
    graph.erase()
    path = args.workdir / f"{name}.ait"
    compile_module(module, CompileOptions("cuda", measure=args.measure), output=path, constants=constants)
    print(f"{name}: compiled in {time.perf_counter() - start:.1f} s", flush=True)
    return Model(path, verify_weights=False)


def replay(model: Model, inputs: Any, outputs: Any) -> measure.Run:
    return lambda: model.run_with_tensors(inputs, outputs, sync=False, graph_mode=True)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description="One dynamic artifact beside artifacts made for each batch.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=numbers, default=[1, 3, 8, 17, 32], help="default: 1,3,8,17,32")
    parser.add_argument("--hints", type=numbers, default=[1, 32], help="of the dynamic batch (default: 1,32)")
    parser.add_argument("--seq", type=int, help="length (default: the model's first)")
    parser.add_argument("--layers", type=int, help="layers (default: the model's own)")
    parser.add_argument("--measure", action="store_true", help="choose kernels by time")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds to spend on each time")
    parser.add_argument("--workdir", default="build/benchmarks", help="where artifacts go (default: %(default)s)")
    record.add_save(parser)
    args = parser.parse_args()
    args.workdir = own_folder(args.workdir)
    entry = MODELS[args.model]
    length = args.seq or entry.lengths[0]
    work = entry.build(torch.float16, args.layers or entry.layers, [(b, length) for b in args.batch])
    dynamic = artifact(work, f"{args.model}_dynamic", None, args.hints, args)
    rows: list[list[str]] = []
    worst = 0.0
    for batch in args.batch:
        fixed = artifact(work, f"{args.model}_{batch}", batch, [], args)
        inputs = work.inputs((batch, length), "cuda")
        runs: dict[str, measure.Run] = {}
        for name, model in (("dynamic", dynamic), ("fixed", fixed)):
            outputs = model.run_with_tensors(inputs, sync=True)
            runs[name] = replay(model, inputs, outputs)
        seconds = measure.median_seconds(runs, "cuda", args.budget)
        ratio = seconds["dynamic"] / seconds["fixed"]
        worst = max(worst, ratio)
        rows.append([f"{batch} x {length}", *(f"{seconds[n] * 1e3:.3f}" for n in runs), f"{ratio:.3f}"])
        fixed.close()
    record.show(args.save, ["batch x length", "dynamic ms", "fixed ms", "ratio"], rows)
    print(f"{args.model}, {torch.cuda.get_device_name()}: largest ratio {worst:.3f}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
