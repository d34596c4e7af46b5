"""The results of a profile: the time of each launch of some runs."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ait_mlir.host.files import write_atomic


def launch_id(index: int) -> str:
    """The node of a launch in Model Explorer."""
    return f"launch_{index}"


@dataclass(frozen=True)
class LaunchTime:
    """One launch in one run; `begin` and `duration` are in microseconds, `begin` from the first launch of the run."""

    iteration: int
    launch: int
    begin: float
    duration: float


@dataclass(frozen=True)
class Profile:
    """The launches of a model, described by their ops, and their times in `iterations` runs."""

    model: str
    target: str
    iterations: int
    launches: Sequence[str]
    times: Sequence[LaunchTime]

    def report(self) -> dict[str, Any]:
        """One row for each launch, in the order of the program, with times in milliseconds.

        `ms_per_iter` is the time of the launch in a run: of all its `calls`, if it is in a loop. `share` is its part of
        the time of all launches.
        """
        by_run: list[dict[int, float]] = [{} for _ in range(self.iterations)]
        calls: dict[int, int] = {}
        for time in self.times:
            run = by_run[time.iteration]
            run[time.launch] = run.get(time.launch, 0.0) + time.duration / 1e3
            calls[time.launch] = calls.get(time.launch, 0) + (time.iteration == 0)
        total = statistics.fmean(sum(run.values()) for run in by_run)
        rows: list[dict[str, Any]] = []
        for launch in sorted(calls):
            found = [run.get(launch, 0.0) for run in by_run]
            mean = statistics.fmean(found)
            rows.append(
                {
                    "index": launch,
                    "launch": self.launches[launch],
                    "calls": calls[launch],
                    "ms_per_iter": mean,
                    "ms_min": min(found),
                    "ms_deviation": statistics.pstdev(found),
                    "share": mean / total if total else 0.0,
                }
            )
        return {
            "model": self.model,
            "target": self.target,
            "iterations": self.iterations,
            "ms_per_iter": total,
            "launches": rows,
        }

    def trace(self) -> dict[str, Any]:
        """The runs one after another, in the trace event format of Chrome; times are in microseconds."""
        lengths = [0.0] * self.iterations
        for time in self.times:
            lengths[time.iteration] = max(lengths[time.iteration], time.begin + time.duration)
        starts = [sum(lengths[:i]) for i in range(self.iterations)]
        about = {"ph": "M", "pid": 0, "tid": 0}
        events: list[dict[str, Any]] = [
            {**about, "name": "process_name", "args": {"name": f"{self.model} on {self.target}"}},
            {**about, "name": "thread_name", "args": {"name": "launches"}},
        ]
        for time in self.times:
            what = self.launches[time.launch]
            events.append(
                {
                    "name": what.partition(":")[0],
                    "ph": "X",
                    "pid": 0,
                    "tid": 0,
                    "ts": starts[time.iteration] + time.begin,
                    "dur": time.duration,
                    "args": {"launch": what, "index": time.launch, "iteration": time.iteration},
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def node_data(self) -> dict[str, Any]:
        """The milliseconds of each launch in a run, as data for the nodes of the program in Model Explorer."""
        times = {launch_id(row["index"]): {"value": row["ms_per_iter"]} for row in self.report()["launches"]}
        colors = enumerate(("#ffffff", "#ff7043"))
        gradient = [{"stop": stop, "bgColor": color, "textColor": "#000000"} for stop, color in colors]
        return {self.model: {"name": f"ms on {self.target}", "results": times, "gradient": gradient}}

    def by_name(self) -> dict[str, Any]:
        """The rows of the report by operator and number of the launch, such as `gemm_rcr_0`."""
        names = [what.partition(":")[0].partition(" ")[0] for what in self.launches]
        return {f"{names[row['index']]}_{row['index']}": row for row in self.report()["launches"]}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the rows by name as JSON, whole or not at all."""
        write_atomic(Path(path), (json.dumps(self.by_name(), indent=1) + "\n").encode())

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON, whole or not at all."""
        write_atomic(Path(path), (json.dumps(self.trace()) + "\n").encode())

    def write_node_data(self, path: str | os.PathLike[str]) -> None:
        """Write the data for nodes as JSON, whole or not at all."""
        write_atomic(Path(path), (json.dumps(self.node_data(), indent=1) + "\n").encode())
