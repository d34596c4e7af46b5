"""Chooses kernels by their times on the devices of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Operation

from ait_mlir.compiler.base import DynamicProfileStrategy
from ait_mlir.compiler.transform.apply import dump, writable
from ait_mlir.dialects.ait.types import KernelAttr
from ait_mlir.frontend.compile_options import cards_of, force_profiler_cache, points_of
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.lift import emit
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.target import Target, as_target
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.host.processes import run
from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.lowering.module_target import make_target, set_target
from ait_mlir.selection.budget import known_selector, selector
from ait_mlir.selection.measure import require_device
from ait_mlir.selection.select import select_graph

Callback = Callable[[Any, Any], None]
"""A function of a profiler's standard output, or None if it failed, and of the delegate."""


@dataclass(frozen=True)
class ProfileResult:
    """A profiler's result for an operator at one size: the time in milliseconds and the workspace in bytes."""

    op_name: str
    exec_key: str
    op_config: str
    duration: float
    workspace: int = 0
    split_k: int | None = None


@dataclass
class GemmProfilerPostprocessingDelegate:
    """Collects the results of profilers, and finally keeps the fastest for each operator and size.

    `best` has the kept results, by name of the operator and size. An operator given to `watch` gets the configurations
    in `_attrs["exec_path"]`.
    """

    best: dict[tuple[str, str], ProfileResult] = field(default_factory=dict[tuple[str, str], ProfileResult])
    operators: dict[str, Operator] = field(default_factory=dict[str, Operator])
    _instances: SimpleQueue[ProfileResult] = field(default_factory=SimpleQueue[ProfileResult])

    def watch(self, operator: Operator) -> None:
        """Register an operator; results for its name will be written to it."""
        self.operators[str(operator.attrs["name"])] = operator

    def add_instance(self, instance: ProfileResult) -> None:
        """Collect a result; any thread may call it."""
        self._instances.put(instance)

    def postprocess_results(self) -> None:
        """Keep the fastest result so far for each operator and size, over all `split_k`."""
        while not self._instances.empty():
            found = self._instances.get()
            key = found.op_name, found.exec_key
            if key not in self.best or found.duration < self.best[key].duration:
                self.best[key] = found
        for (name, key), result in self.best.items():
            if name in self.operators:
                self.operators[name].attrs.setdefault("exec_path", {})[key] = result


class ProfilerRunner:
    """Runs profilers in separate processes, one at a time on each device.

    `devices` are numbers of devices as text; a profiler sees only its own device. `timeout` is in seconds, for each
    profiler. If a profiler fails or takes longer, its callback gets None.
    """

    def __init__(self, devices: Sequence[str], postprocessing_delegate: Any, timeout: int = 500):
        if not devices:
            raise BuildError("a ProfilerRunner needs at least one device, such as '0'")
        if timeout <= 0:
            raise BuildError(f"the timeout is {timeout} s, expected more than 0")
        self.delegate, self.timeout = postprocessing_delegate, timeout
        self._free: SimpleQueue[str] = SimpleQueue()
        for device in devices:
            self._free.put(str(device))
        self._pool = ThreadPoolExecutor(len(devices))
        self._jobs: list[Future[None]] = []

    def push(self, cmds: Sequence[str], process_result_callback: Callback) -> None:
        """Run a command as soon as a device is free; then call `process_result_callback(stdout, delegate)`."""
        self._jobs.append(self._pool.submit(self._run, list(cmds), process_result_callback))

    def join(self) -> None:
        """Wait for all commands, then let the delegate choose. Raises the first error of a callback."""
        try:
            for job in self._jobs:
                job.result()
        finally:
            self._pool.shutdown(cancel_futures=True)
        self.delegate.postprocess_results()

    def _run(self, cmds: list[str], callback: Callback) -> None:
        device = self._free.get()
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": device, "HIP_VISIBLE_DEVICES": device}
        try:
            done = run(cmds, self.timeout, environment)
            found = done.stdout if done.returncode == 0 else None
        except (OSError, subprocess.TimeoutExpired):
            found = None
        finally:
            self._free.put(device)
        callback(found, self.delegate)


def profile(
    sorted_graph: Sequence[Tensor],
    workdir: str | os.PathLike[str] = "./tmp",
    devices: Sequence[int] | None = None,
    dynamic_profiling_strategy: DynamicProfileStrategy | str = DynamicProfileStrategy.MAX,
    timeout: int = 500,
    target: Target | str | None = None,
) -> None:
    """Choose kernels for the operators of a graph by time, and note them in `_attrs["kernels"]`.

    Kernels are timed on the cards `devices`, all at the same time; by default on card 0. A dynamic dim is timed at its
    largest size (`MAX`), its smallest (`MIN`), or its hints (`HINTS`). Measuring ends after `timeout` seconds; the
    remaining kernels are chosen by estimate. Times are remembered (`AIT_TIMINGS`), so a later compilation of the graph
    finds them. The IR with the choices is written to `workdir`. `target` is by default the current one, or this
    machine's. Raises `AitError` if this machine cannot measure, and with `force_profiler_cache` if a time is not known.
    """
    emission = emit(sorted_graph)
    directory = writable(workdir)
    name = (
        dynamic_profiling_strategy if isinstance(dynamic_profiling_strategy, str) else dynamic_profiling_strategy.name
    )
    if name.upper() not in ("MIN", "MAX", "HINTS"):
        raise BuildError(f"unknown strategy {name!r}; expected MIN, MAX or HINTS")
    cards = cards_of(devices, "devices")
    chosen = Target.current_or_detected() if target is None else as_target(target)
    compiled_for = make_target(chosen.kind, chosen.arch)
    forced = force_profiler_cache()
    if not forced:
        require_device(compiled_for)
    marks: dict[Operation, Operator] = {}
    places: dict[int, Operator] = {}
    for operator, snapshots in emission.groups.items():
        places[len(places)] = operator
        for s in snapshots:
            marks[s.op] = operator
            s.op.location = FileLineColLoc(StringAttr("profile"), IntAttr(len(places) - 1), IntAttr(0))
    set_target(emission.module, compiled_for)
    before = MEASURE_DEVICES.set(cards)
    try:
        points = [name.lower()]
        timed = None if forced else selector(compiled_for, True, points, float(timeout))
        with closing(timed or known_selector(compiled_for, points)) as by_time:
            select_graph(emission.graph, compiled_for, by_time)
    finally:
        MEASURE_DEVICES.reset(before)
    kernels: dict[Operator, list[str]] = {}
    for op in emission.module.walk():
        kernel, place = op.attributes.get("kernel"), op.location
        if isinstance(kernel, KernelAttr) and isinstance(place, FileLineColLoc) and place.filename.data == "profile":
            kernels.setdefault(places[place.line.data], []).append(str(kernel))
    for operator, found in kernels.items():
        operator.attrs["kernels"] = found
    assert directory is not None
    dump(Path(directory), "profile", list(sorted_graph), emission.module)


def profile_operator(operator: Operator, workdir: str, devices: Sequence[int] | None, strategy: object) -> None:
    """Choose the kernels of an operator, and of those that it depends on, by time (`Operator.profile`)."""
    if not operator.outputs:
        raise BuildError(f"{operator.name} is timed once it was called on its inputs")
    profile(toposort(operator.outputs), workdir, devices, points_of(strategy).upper())
