"""The time of one run on a CUDA device by launch: bytes, operations, time, and the share that the floor has of it.

    python -m benchmarks.launches ARTIFACT.ait --dim batch=1 --dim seq=128

Times are of kernels in replays of the run's CUDA graph, as CUPTI reports them: from the end of the launch before to the
end of this one, so that they add up to the run; launches of one kernel and shape are one row, with their median. The
floor of a launch is its bytes (operands and results once each) over the bandwidth of a large copy, or its operations
over the rate of a large matrix product, whichever takes longer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ait_mlir import driver
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.runtime import Model, artifact
from ait_mlir.tools.commands.common import parse_dims
from ait_mlir.tools.report import Launch, report
from benchmarks import measure, record
from benchmarks.measure import Ceilings, table

RUNS = 20
BELONGS = ("splitKreduce", "Memset", "memset", "reduce_join_kernel", "NormPart)2")
"""Parts of names of kernels that follow another one of the same launch."""
_TORCH = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "int32": torch.int32,
    "int64": torch.int64,
}


@dataclass(frozen=True)
class Event:
    """A kernel that ran; times in microseconds."""

    name: str
    start: float
    end: float


def example_inputs(model: Model, dims: dict[str, int]) -> dict[str, torch.Tensor]:
    """Random inputs for these dims, with the strides that the model reads."""
    inputs: dict[str, torch.Tensor] = {}
    strides = model.input_strides(dims)
    for name, shape in model.input_shapes(dims).items():
        dtype = _TORCH[model.get_input_dtype(name)]
        value = (
            torch.randn(shape, device="cuda") if dtype.is_floating_point else torch.randint(0, 2, shape, device="cuda")
        )
        inputs[name] = torch.empty_strided(shape, strides[name], dtype=dtype, device="cuda").copy_(value)
    return inputs


def traced(model: Model, inputs: Any, outputs: Any) -> list[Event]:
    """The kernels of `RUNS` replays in the order in which they started."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(4):
        model.run_with_tensors(inputs, outputs, graph_mode=True)
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(RUNS):
            model.run_with_tensors(inputs, outputs, graph_mode=True)
    events = [Event(e.name, e.time_range.start, e.time_range.end) for e in trace.events() or [] if e.device_time > 0]
    return sorted(events, key=lambda e: e.start)


def by_launch(events: Sequence[Event], launches: int) -> list[float] | None:
    """Median microseconds of each launch; None if kernels and launches do not correspond."""
    if len(events) % RUNS:
        return None
    size = len(events) // RUNS
    times: list[list[float]] = []
    for first in range(0, len(events), size):
        run: list[float] = []
        last = events[first].start
        for event in events[first : first + size]:
            step = max(0.0, event.end - last)
            last = max(last, event.end)
            if run and any(word in event.name for word in BELONGS):
                run[-1] += step
            else:
                run.append(step)
        times.append(run)
    if any(len(run) != launches for run in times):
        return None
    return [statistics.median(column) for column in zip(*times, strict=True)]


def launch_rows(launches: Sequence[Launch], micros: Sequence[float], ceilings: Ceilings) -> list[list[str]]:
    """A row for each kernel and shape, most time first, and the total."""
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, launch in enumerate(launches):
        groups[launch.op, launch.kernel, launch.shapes].append(i)
    total = sum(micros)

    def cells(names: Sequence[str], members: Sequence[int]) -> list[str]:
        moved = sum(launches[i].read + launches[i].written for i in members) / len(members)
        flops = sum(launches[i].flops for i in members) / len(members)
        floor = ceilings.floor(flops, moved) * 1e6
        each = statistics.median(micros[i] for i in members)
        spent = sum(micros[i] for i in members)
        figures = [f"{moved / 1e6:.2f}", f"{flops / 1e9:.2f}", f"{each:.2f}", f"{floor:.2f}", share_of(floor, each)]
        return [*names, str(len(members)), *figures, f"{spent:.1f}", f"{spent / total:.0%}"]

    ordered = sorted(groups.items(), key=lambda item: -sum(micros[i] for i in item[1]))
    rows = [cells(names, members) for names, members in ordered]
    floors = sum(ceilings.floor(x.flops, x.read + x.written) for x in launches) * 1e6
    moved, flops = (sum(values) for values in zip(*((x.read + x.written, x.flops) for x in launches), strict=True))
    sums = [f"{moved / 1e6:.2f}", f"{flops / 1e9:.2f}", "", f"{floors:.2f}", f"{floors / total:.0%}"]
    return [*rows, ["all", "", "", str(len(launches)), *sums, f"{total:.1f}", "100%"]]


def share_of(part: float, whole: float) -> str:
    """A share in percent; `-` for a launch that takes no time."""
    return f"{part / whole:.0%}" if whole else "-"


def kernel_rows(events: Sequence[Event]) -> list[list[str]]:
    """A row for each name of a kernel."""
    times: dict[str, list[float]] = defaultdict(list)
    for event in events:
        times[event.name].append(event.end - event.start)
    total = sum(sum(t) for t in times.values())
    return [
        [
            name[:90],
            f"{len(t) / RUNS:g}",
            f"{statistics.median(t):.2f}",
            f"{sum(t) / RUNS:.1f}",
            f"{sum(t) / total:.0%}",
        ]
        for name, t in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("artifact")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="default: last hint or maximum")
    parser.add_argument("--kernels", action="store_true", help="the kernels by name, too")
    record.add_save(parser)
    args = parser.parse_args()
    loaded = artifact.read(args.artifact, verify_weights=False)
    dims = parse_dims(args.dim, loaded.manifest.dims)
    module = parse_source(context(), SourceText(args.artifact, loaded.ir_text))
    launches = report(module, driver.program_of(module), dims).launches
    ceilings = measure.ceilings("cuda", torch.float16)
    with Model(args.artifact) as model:
        for name in model.get_constant_names(unset_only=True):
            sys.exit(f"the artifact has no value for {name!r}; compile it with its weights")
        inputs = example_inputs(model, dims)
        outputs = {
            n: torch.empty(s, dtype=_TORCH[model.get_output_dtype(n)], device="cuda")
            for n, s in model.output_shapes(dims).items()
        }
        ms, _, _ = model.benchmark(inputs, outputs, count=50, repeat=5, graph_mode=True)
        events = traced(model, inputs, outputs)
    micros = by_launch(events, len(launches))
    told = ", ".join(f"{name} = {value}" for name, value in dims.items())
    print(f"{model.name} at {told}: {torch.cuda.get_device_name()}, graph replay {ms * 1e3:.1f} us")
    print(f"ceilings: {ceilings.flops / 1e12:.0f} TFLOP/s, {ceilings.bytes / 1e9:.0f} GB/s")
    if micros is not None:
        heads = ["op", "kernel", "shapes", "calls", "MB", "GFLOP", "us", "floor us", "of floor", "us a run", "share"]
        limits = f"{ceilings.flops / 1e12:.0f} TFLOP/s, {ceilings.bytes / 1e9:.0f} GB/s"
        record.show(args.save, heads, launch_rows(launches, micros, ceilings), limits=limits)
    else:
        print(f"{len(events) / RUNS:g} kernels a run do not correspond to {len(launches)} launches")
    if micros is None or args.kernels:
        print(table([["kernel", "calls", "median us", "us a run", "share"], *kernel_rows(events)]))


if __name__ == "__main__":
    try:
        main()
    except AitError as error:
        sys.exit(f"error: {error}")
