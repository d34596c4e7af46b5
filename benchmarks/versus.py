"""Two artifacts of one graph on a CUDA device: whether their results have the same bits, and which is faster.

    python -m benchmarks.versus ONE.ait OTHER.ait --dim batch=1 --dim seq=512 --launches 4

Replays of their CUDA graphs take turns, one at a time, in another order each time, and the card rests between rounds:
what heat and power do to the clock, they do to both. The difference is the median over pairs, with its quartiles.
Constants that an artifact has no value for are random, the same on both sides. `--launches` also shows the N kinds of
launches that differ most, as `benchmarks.launches` times them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping

import torch

from ait_mlir import driver
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.runtime import Model
from ait_mlir.tools.report import report
from benchmarks.launches import by_launch, dim, example_inputs, traced
from benchmarks.measure import Run, table

TURNS, REST = 40, 0.02
"""A round is so many pairs of replays, with so many seconds before it."""


def constant(model: Model, name: str) -> torch.Tensor:
    """A random value: small, so that sums of many products stay in range, or near 1 for a vector."""
    dtype = getattr(torch, model.constant_dtype(name))
    shape = model.constant_shape(name)
    values = torch.randn(shape, device="cuda") * 0.02 + (len(shape) == 1)
    return values.to(dtype)


def pairs(one: Run, other: Run, budget: float) -> tuple[list[float], list[float]]:
    """Microseconds of replays of both, in pairs, for about so many seconds."""
    events: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[], []]
    stop = time.perf_counter() + budget
    while not events[0] or time.perf_counter() < stop:
        time.sleep(REST)
        for turn in range(TURNS):
            for which in (0, 1) if turn % 2 else (1, 0):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                (one, other)[which]()
                end.record()
                events[which].append((begin, end))
        torch.cuda.synchronize()
    first, second = ([begin.elapsed_time(end) * 1e3 for begin, end in side] for side in events)
    return first, second


def kinds(model: Model, dims: Mapping[str, int], inputs: object, outputs: object) -> dict[str, tuple[int, float]]:
    """Calls and microseconds per run for each op and shapes; empty if kernels and launches do not correspond."""
    module = parse_source(context(), SourceText(model.name, model.ir_text))
    launches = report(module, driver.program_of(module), dict(dims)).launches
    micros = by_launch(traced(model, inputs, outputs), len(launches))
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for launch, each in zip(launches, micros or [], strict=False):
        calls, spent = found[f"{launch.op} {launch.shapes}"]
        found[f"{launch.op} {launch.shapes}"] = calls + 1, spent + each
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("artifacts", nargs=2)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N[,N...]", type=dim)
    parser.add_argument("--launches", type=int, default=0, metavar="N")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds for each size (default: 3)")
    args = parser.parse_args()
    named = dict(args.dim)
    if len({len(values) for values in named.values()}) > 1:
        parser.error("as many values for each dim: the first of all are a size, the second of all the next")
    sizes = [dict(zip(named, values, strict=True)) for values in zip(*named.values(), strict=True)] or [{}]
    models = [Model(path, verify_weights=False) for path in args.artifacts]
    torch.manual_seed(0)
    for name in models[0].get_constant_names(unset_only=True):
        value = constant(models[0], name)
        for model in models:
            model.set_constant(name, value)
    for dims in sizes:
        inputs = example_inputs(models[0], dims)
        outputs = [model.run_with_tensors(inputs, sync=True) for model in models]
        plain = [{name: value.clone() for name, value in out.items()} for out in outputs]
        runs = [
            lambda model=model, out=out, inputs=inputs: model.run_with_tensors(inputs, out, sync=False, graph_mode=True)
            for model, out in zip(models, outputs, strict=True)
        ]
        for _ in range(3):
            for run in runs:
                run()
        torch.cuda.synchronize()
        same = all(
            torch.equal(value.view(torch.uint8), other[name].view(torch.uint8))
            for other in (outputs[1], *plain)
            for name, value in outputs[0].items()
        )
        times = pairs(*runs, args.budget)
        low, middle, high = statistics.quantiles([a - b for a, b in zip(*times, strict=True)], n=4)
        told = ", ".join(f"{name} = {value}" for name, value in dims.items())
        print(
            f"{models[0].name} at {told}, {torch.cuda.get_device_name()}: {'the same' if same else 'OTHER'} bits; "
            f"us {statistics.median(times[0]):.1f}, {statistics.median(times[1]):.1f}; "
            f"difference {middle:.1f} ({low:.1f} to {high:.1f}), {len(times[0])} pairs",
            flush=True,
        )
        if args.launches:
            sides = [kinds(model, dims, inputs, out) for model, out in zip(models, outputs, strict=True)]
            rows = [
                (kind, *(side.get(kind, (0, 0.0)) for side in sides)) for kind in dict.fromkeys([*sides[0], *sides[1]])
            ]
            rows.sort(key=lambda row: -abs(row[1][1] - row[2][1]))
            cells = [[kind, str(a[0]), f"{a[1]:.2f}", str(b[0]), f"{b[1]:.2f}"] for kind, a, b in rows[: args.launches]]
            print(table([["launch", "calls", "us a run", "calls", "us a run"], *cells]), flush=True)


if __name__ == "__main__":
    try:
        main()
    except AitError as error:
        sys.exit(f"error: {error}")
