"""`ait bench`: measures the time of runs."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ait_mlir.runtime.data import AITData
from ait_mlir.runtime.model import Model
from ait_mlir.tools.commands.common import (
    EXAMPLE_ONLY,
    TRUST,
    UsageError,
    filled,
    parse_dims,
    set_weights,
    text_of_bytes,
)
from ait_mlir.tools.commands.run import manifest_of

_EXAMPLE = """examples:
  ait bench ffn.ait --dim batch=8
  ait bench bert.ait --dim batch=1 --dim seq=128 --graph --count 100
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "bench",
        help="time an artifact",
        description="Time runs of an artifact on random inputs. "
        f"The machine code of the file runs, also where an option is refused later. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("artifact", help="a .ait file")
    p.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="default: the last hint, else the maximum"
    )
    p.add_argument("--count", type=int, default=20, help="runs in a batch (default: 20)")
    p.add_argument("--repeat", type=int, default=5, help="batches (default: 5)")
    p.add_argument("--graph", action="store_true", help="as a CUDA graph")
    p.add_argument("--weights", metavar="FILE", help="a safetensors file for constants, or 'random' (default)")
    p.add_argument("--json", action="store_true", help="print the times as one JSON object")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print the times; returns the exit code."""
    if options.count < 1 or options.repeat < 1:
        raise UsageError(f"--count {options.count} --repeat {options.repeat}: expected at least 1 of each")
    with Model(options.artifact) as model:
        dims = parse_dims(options.dim, manifest_of(model).dims)
        set_weights(model, options.weights or "random", 0)
        owned: list[AITData] = []
        try:
            inputs: dict[str, AITData] = {}
            for i, (name, shape) in enumerate(model.input_shapes(dims).items()):
                inputs[name] = model.numpy_to_ait_data(filled("random", shape, model.get_input_dtype(name), i))
                owned.append(inputs[name])
            outputs: dict[str, AITData] = {}
            for name, shape in model.output_shapes(dims).items():
                outputs[name] = model.allocate_data(shape, model.get_output_dtype(name))
                owned.append(outputs[name])
            mean, deviation, _ = model.benchmark(
                inputs, outputs, graph_mode=options.graph, count=options.count, repeat=options.repeat
            )
        finally:
            for data in owned:
                model.free_memory(data.data_ptr)
        if options.json:
            found: dict[str, Any] = {"model": model.name, "target": model.target, "dims": dims}
            found |= {"ms": mean, "deviation_ms": deviation, "batches": options.repeat, "runs": options.count}
            found |= {"arena_bytes": model.arena_bytes(dims), "copies": bool(model.stats()["copies"])}
            print(json.dumps(found | ({"graphs": dict(model.graph_stats())} if options.graph else {})))
            return 0
        shown = ", ".join(f"{name} = {value}" for name, value in dims.items()) or "no dims"
        print(f"{model.name} on {model.target}, {shown}: {mean:.4f} ms a run, deviation {deviation:.4f} ms")
        print(f"{options.repeat} batches of {options.count} runs; arena {text_of_bytes(model.arena_bytes(dims))}")
        if model.stats()["copies"]:
            print("each run copies tensors, which are row-major here: the model declares other strides")
        if options.graph:
            print("graphs: " + ", ".join(f"{count} {name}" for name, count in model.graph_stats().items()))
    return 0
