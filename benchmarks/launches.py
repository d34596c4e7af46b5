"""Where the time of one run goes on a CUDA device: each kernel with its count, its time and its share.

    python -m benchmarks.launches ARTIFACT.ait --dim batch=1 --dim seq=128

Times are CUPTI's, of runs without a graph, median over the runs; the last line is the time of a replayed graph.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from typing import Any

import torch

from ait_mlir.runtime import Model
from benchmarks.measure import table

RUNS = 20
_TORCH = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "int64": torch.int64}


def example_inputs(model: Model, dims: dict[str, int]) -> dict[str, torch.Tensor]:
    """Random inputs for these dims."""
    inputs: dict[str, torch.Tensor] = {}
    for name, shape in model.input_shapes(dims).items():
        dtype = _TORCH[model.get_input_dtype(name)]
        value = (
            torch.randn(shape, device="cuda") if dtype.is_floating_point else torch.randint(0, 2, shape, device="cuda")
        )
        inputs[name] = value.to(dtype)
    return inputs


def kernel_times(model: Model, inputs: Any, outputs: Any) -> dict[str, list[float]]:
    """Microseconds of each kernel by name, one list entry a call."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(3):
        model.run_with_tensors(inputs, outputs)
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(RUNS):
            model.run_with_tensors(inputs, outputs)
    times: dict[str, list[float]] = defaultdict(list)
    for event in trace.events() or []:
        if event.device_time > 0:
            times[event.name].append(event.device_time)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("artifact")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    args = parser.parse_args()
    dims = {name: int(value) for name, value in (d.split("=") for d in args.dim)}
    with Model(args.artifact) as model:
        for name in model.get_constant_names(unset_only=True):
            raise SystemExit(f"the artifact has no value for {name!r}; compile it with its weights")
        inputs = example_inputs(model, dims)
        outputs = {
            n: torch.empty(s, dtype=_TORCH[model.get_output_dtype(n)], device="cuda")
            for n, s in model.output_shapes(dims).items()
        }
        times = kernel_times(model, inputs, outputs)
        total = sum(sum(t) for t in times.values()) / RUNS
        rows = [
            [
                name[:90],
                f"{len(t) / RUNS:g}",
                f"{statistics.median(t):.2f}",
                f"{sum(t) / RUNS:.1f}",
                f"{sum(t) / RUNS / total:.0%}",
            ]
            for name, t in sorted(times.items(), key=lambda item: -sum(item[1]))
        ]
        print(table([["kernel", "calls", "median us", "us a run", "share"], *rows]))
        ms, _, _ = model.benchmark(inputs, outputs, count=50, repeat=5, graph_mode=True)
        print(f"sum of kernels {total:.1f} us, graph replay {ms * 1e3:.1f} us")


if __name__ == "__main__":
    main()
