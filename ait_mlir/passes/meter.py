"""The card as a stopwatch: candidates compiled into one library, each timed as many runs in one graph.

Weights rotate over copies that the cache cannot hold together, as the layers of a model have weights of their own.
Other inputs and the results take turns between few places, all of them in the cache if they fit, as one kernel reads
what the one before has written.
"""

from __future__ import annotations

import functools
import math
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from xdsl.context import Context

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.errors import AitError, ToolchainError
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.choices import Way
from ait_mlir.lowering.emit import emit_program
from ait_mlir.lowering.fragments import place
from ait_mlir.lowering.kernels import Target
from ait_mlir.passes.race import race
from ait_mlir.passes.ranges import Times
from ait_mlir.passes.target import set_target
from ait_mlir.passes.tasks import Point, Task, with_task

LONGEST, SHORTEST = 96, 4
"""Runs in a row in one graph."""
USUAL = 20
SHORT, REST, LONGEST_REST = 10e-6, 2.0, 5e-3
"""After a graph of kernels longer than `SHORT` the card rests, `REST` times as long but `LONGEST_REST` seconds at
most. Large products alone, one after the other, make it lower its clock, by up to 15 % on an H200; in a model they come
with kernels that need less power."""
PLACES = 4
"""Copies of what is no weight, as far as they fit in a quarter of the cache together: some kernels take 20 % longer at
some addresses, which is luck that a candidate should neither have nor lack."""
GRAPH_SECONDS = 3e-3
"""A graph of more than `USUAL` runs takes no longer than this, by estimate."""
PROGRAMS_A_FILE = 24
_SEED = 20


class Meter(Protocol):
    """What times candidates; tests have one of their own."""

    def source(self, task: Task, way: Way) -> str | None:
        """A digest of the code of a candidate and of what compiles it; None when it has no code."""
        ...

    def build(self, wanted: Sequence[tuple[Task, Way]]) -> None:
        """Make these candidates ready to be timed."""
        ...

    def race(self, task: Task, point: Point, ways: Sequence[Way], estimate: float) -> dict[Way, Times]:
        """The times of the ways at a point; one that cannot run is missing."""
        ...


@dataclass
class Program:
    """The code of a candidate: a table that `entry` returns, and files that other candidates may share."""

    entry: str
    table: str
    kernels: dict[str, str]
    digest: str
    library: Path | None = None


@dataclass
class DeviceMeter:
    """Times candidates on the device that is here."""

    target: Target
    programs: dict[tuple[str, Way], Program | None] = field(default_factory=dict[tuple[str, Way], Program | None])
    folders: list[Path] = field(default_factory=list[Path])

    def __enter__(self) -> DeviceMeter:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def source(self, task: Task, way: Way) -> str | None:
        program = self.program(task, way)
        return None if program is None else program.digest

    def program(self, task: Task, way: Way) -> Program | None:
        key = (f"{task.text}{task.scope}", way)
        if key not in self.programs:
            try:
                self.programs[key] = self._emit(task, way, f"ait_candidate_{len(self.programs)}")
            except ToolchainError:
                raise
            except (AitError, PassError, ValueError):
                self.programs[key] = None
        return self.programs[key]

    def _emit(self, task: Task, way: Way, entry: str) -> Program:
        from ait_mlir.lowering.build import sources_digest

        module, op = with_task(task)
        for part, kernel in zip(place(op, way.cut), way.kernels(), strict=True):
            part.attributes["kernel"] = kernel
        set_target(module, self.target)
        plan(module)
        program = next(o for o in module.ops if o.name == "ait_rt.program")
        files = emit_program(module, cast(Any, program), self.target, entry).files
        table = files.pop("program.cc")
        return Program(
            entry, table, files, sources_digest({**files, "program.cc": table.replace(entry, "")}, self.target)
        )

    def build(self, wanted: Sequence[tuple[Task, Way]]) -> None:
        from ait_mlir.lowering.build import build_library, refused_sources

        found = [self.program(task, way) for task, way in wanted]
        programs = [p for p in found if p is not None and p.library is None]
        if not programs:
            return
        folder = Path(tempfile.mkdtemp(prefix="ait_measure_"))
        self.folders.append(folder)
        device = {n: t for p in programs for n, t in p.kernels.items() if not n.endswith(".cc")}
        refused = refused_sources(device, self.target, folder / "check")
        good = [p for p in programs if not refused & p.kernels.keys()]
        files = {n: t for n, t in device.items() if n not in refused}
        host = {n: t for p in good for n, t in p.kernels.items() if n.endswith(".cc")}
        pieces = [*host.values(), *(p.table for p in good)]
        for i in range(0, len(pieces), PROGRAMS_A_FILE):
            files[f"candidates_{i}.cc"] = "\n".join(pieces[i : i + PROGRAMS_A_FILE])
        library = build_library(files, self.target, folder / "library") if good else None
        for program in good:
            program.library = library

    def race(self, task: Task, point: Point, ways: Sequence[Way], estimate: float) -> dict[Way, Times]:
        from ait_mlir.runtime.loading import runtime_library

        runtime = runtime_library(self.target.kind)
        chain, places, copies, inputs = self._workload(task, point, estimate, int(runtime.cache_bytes(0)))
        timing = runtime.make_timing()(0, point, chain, places, copies, len(inputs), *inputs, *_patterns())
        running: list[Way] = []
        for way in ways:
            program = self.program(task, way)
            if (
                program is not None
                and program.library is not None
                and not timing.add(str(program.library), program.entry)
            ):
                running.append(way)
        if not running:
            return {}

        def sample(i: int) -> float:
            seconds: float = timing.sample(i)
            if seconds > SHORT:
                time.sleep(min(LONGEST_REST, REST * chain * seconds))
            return seconds

        return dict(zip(running, race(sample, len(running)), strict=True))

    def _workload(self, task: Task, point: Point, estimate: float, cache: int) -> tuple[int, int, int, list[Any]]:
        """Runs in a row, places of inputs and outputs, copies of the weights, and what the inputs hold."""
        env = task.environment(point)
        kinds = [BY_IR[tensor_type(v).element_type].name for v in task.graph.block.args]
        sizes = [tensor_type(v).byte_size().evaluate(env) for v in task.graph.block.args]
        weights = sum(tensor_type(p.output).byte_size().evaluate(env) for p in task.graph.params())
        copies = min(LONGEST, max(2, math.ceil(2 * cache / max(weights, 1)))) if weights else 1
        chain = max(USUAL, copies)
        if chain * estimate > GRAPH_SECONDS:
            chain = max(SHORTEST, min(USUAL, int(GRAPH_SECONDS / estimate)))
        moving = sum(sizes) + sum(tensor_type(o.value).byte_size().evaluate(env) for o in task.graph.outputs())
        places = max(1, min(PLACES, cache // 4 // max(moving, 1)))
        inputs = [_tensor(random_bytes(kind, size)) for kind, size in zip(kinds, sizes, strict=True)]
        return chain, places, min(copies, chain), inputs


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    from tvm_ffi import from_dlpack

    return cast(Any, from_dlpack)(array)


@functools.cache
def _patterns() -> list[Any]:
    """For each dtype of the ABI, in its order, what constants are filled with."""
    return [_tensor(random_bytes(t.name, 1 << 20)) for t in sorted(BY_IR.values(), key=lambda t: t.abi)]


def random_bytes(dtype: str, size: int) -> np.ndarray[Any, Any]:
    """`size` bytes of a tensor with numbers as a model has them: normal, or 0 and 1 for integers."""
    from ait_mlir.runtime.data import numpy_dtype

    kind = numpy_dtype(dtype)
    rng = np.random.default_rng(_SEED)
    count = max(1, min(size // kind.itemsize, 1 << 20))
    if dtype in ("int32", "int64", "int8", "bool"):
        data = rng.integers(0, 2, count).astype(kind)
    else:
        data = rng.standard_normal(count, dtype=np.float32).astype(kind)
    return np.resize(data.view(np.uint8), max(size, 1))


_context: list[Context] = []


def plan(module: Any) -> None:
    """Run the passes from `selected` to `planned`."""
    from ait_mlir.ir.pipeline import parse_passes, run_passes
    from ait_mlir.passes.pipelines import passes_between
    from ait_mlir.universe import context

    if not _context:
        _context.append(context())
    run_passes(_context[0], module, parse_passes(passes_between("selected", "planned")), verify=False)


__all__ = ["DeviceMeter", "Meter", "Program", "plan", "random_bytes"]
