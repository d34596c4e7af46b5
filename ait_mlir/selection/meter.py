"""Times candidates on the card: compiles them into one library and times many runs of each in one graph.

Weights rotate over copies that are together larger than the cache, because each layer of a model has its own weights.
Other inputs and the results rotate over a few buffers, which stay in the cache if they fit, because a kernel of a model
reads the result of the previous one.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import functools
import itertools
import math
import os
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ait_mlir import callers
from ait_mlir.dialects.ait.data import stored
from ait_mlir.dialects.ait.dtypes import BY_IR, BY_NAME
from ait_mlir.dialects.ait.strided import extent
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import EMPTY_SCOPE, tensor_type
from ait_mlir.errors import AitError, ToolchainError
from ait_mlir.host.cache import Scratch
from ait_mlir.host.card import alone_on_card
from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.candidates import Candidate, cut_in_place
from ait_mlir.lowering.emit import emit_program
from ait_mlir.lowering.kernels import ALGORITHM_KEYS, Target
from ait_mlir.lowering.module_target import set_target
from ait_mlir.lowering.points import Point
from ait_mlir.selection.lanes import Lanes
from ait_mlir.selection.race import ROUNDS, race
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.tasks import Task, with_task

LONGEST, SHORTEST = 96, 4
"""Runs in a row in one graph."""
USUAL = 20
SHORT, REST, LONGEST_REST = 10e-6, 2.0, 5e-3
"""After a graph of kernels longer than `SHORT` seconds the card rests, `REST` times as long but at most `LONGEST_REST`
seconds. A sequence of only large products makes the card lower its clock, by up to 15 % on an H200; in a model, kernels
that need less power run between them."""
PLACES = 8
"""Copies of inputs and results, as many as fit in half of the cache: some kernels take up to 20 % longer at some
addresses, and a comparison should not depend on that."""
GRAPH_SECONDS = 1e-3
"""A graph of more than `USUAL` runs takes no longer than this, by estimate."""
PROGRAMS_A_FILE = 24
PROGRAMS_A_FILE_OF_MANY = 6
"""Programs a file when candidates of many tasks are built together, so that all cores have work; more programs a file
if there are enough files for all cores."""
BUILDERS = 2
"""Builds that run at the same time; meanwhile the candidates of other tasks are timed."""
_SEED = 20


class Meter(Protocol):
    """The interface for timing candidates; tests implement it, too."""

    lanes: Lanes
    """The cards to time on. Several threads may call `race` and `algorithms`, each when it has the turn."""
    waited: float
    """Seconds spent waiting for other processes that timed on the same card."""

    def prepare(self) -> None:
        """Make the prerequisites of timing that all candidates share: the runtime library on a new machine."""
        ...

    def source(self, task: Task, candidate: Candidate) -> str | None:
        """A digest of a candidate's code and its compiler; None when it has no code."""
        ...

    def build(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        """Start to prepare these candidates for timing; the candidates of a task are adjacent."""
        ...

    def build_together(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        """As `build`, for candidates of many tasks that are quick to prepare."""
        ...

    def is_built(self, task: Task, candidates: Sequence[Candidate]) -> bool:
        """Whether these candidates are prepared, so that a race of them starts at once."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait until more candidates are prepared, at most `seconds`."""
        ...

    def abandon(self) -> None:
        """Stop preparing the remaining candidates."""
        ...

    def algorithms(self, task: Task, point: Point, candidate: Candidate) -> list[tuple[int, ...]]:
        """The algorithms of a candidate's library at a point, best estimate first."""
        ...

    def race(
        self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
    ) -> dict[Candidate, Times]:
        """The times of the candidates at a point; a candidate that cannot run is left out."""
        ...

    def close(self) -> None:
        """Release its resources."""
        ...


@dataclass
class Program:
    """The code of a candidate: a table that `entry` returns, and files that other candidates may share.

    `library` is the future path of the built library, which holds all candidates built together; a `refused` candidate
    is not in it.
    """

    entry: str
    table: str
    kernels: dict[str, str]
    digest: str
    library: concurrent.futures.Future[Path | None] | None = None
    refused: bool = False

    @property
    def path(self) -> Path | None:
        """The path of the built library, waiting for its build; None if the candidate is not in a library."""
        if self.library is None or self.library.cancelled():
            return None
        built = self.library.result()
        return None if self.refused else built


@dataclass
class DeviceMeter:
    """Times candidates on this machine's device.

    Candidates that differ only in the algorithm of a library share one program, which gets the algorithm at run time.
    """

    target: Target
    programs: dict[tuple[str, Candidate], Program | None] = field(
        default_factory=dict[tuple[str, Candidate], Program | None]
    )
    rest: float = REST
    rounds: Sequence[tuple[int, float]] = ROUNDS
    folders: list[Scratch] = field(default_factory=list[Scratch])
    builders: concurrent.futures.ThreadPoolExecutor = field(
        default_factory=lambda: concurrent.futures.ThreadPoolExecutor(BUILDERS, "ait-build")
    )
    stop: threading.Event = field(default_factory=threading.Event)
    lanes: Lanes = field(default_factory=lambda: Lanes(timing_cards()))
    waited: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.builders.shutdown(wait=True, cancel_futures=True)
        for folder in self.folders:
            folder.remove()

    def prepare(self) -> None:
        from ait_mlir.runtime.loading import runtime_library

        runtime_library(self.target.kind)

    def source(self, task: Task, candidate: Candidate) -> str | None:
        program = self.program(task, candidate)
        return None if program is None else program.digest

    def program(self, task: Task, candidate: Candidate) -> Program | None:
        candidate = candidate.naming(())
        key = (f"{task.key}{task.scope}", candidate)
        if key not in self.programs:
            try:
                self.programs[key] = self._emit(task, candidate, f"ait_candidate_{len(self.programs)}")
            except ToolchainError:
                raise
            except (AitError, PassError, ValueError):
                self.programs[key] = None
        return self.programs[key]

    def _emit(self, task: Task, candidate: Candidate, entry: str) -> Program:
        from ait_mlir.lowering.build import sources_digest

        module, op = with_task(task)
        for part, kernel in zip(cut_in_place(op, candidate.cut), candidate.attrs(), strict=True):
            part.attributes["kernel"] = kernel
        set_target(module, self.target)
        plan(module)
        program = next(o for o in module.ops if o.name == "ait_rt.program")
        files = emit_program(module, cast(Any, program), self.target, entry).files
        table = files.pop("program.cc")
        return Program(
            entry, table, files, sources_digest({**files, "program.cc": table.replace(entry, "")}, self.target)
        )

    def build(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        for _, pairs in itertools.groupby(wanted, key=lambda pair: id(pair[0])):
            made = {id(p): p for task, candidate in pairs if (p := self.program(task, candidate)) is not None}
            self._submit([p for p in made.values() if p.library is None], PROGRAMS_A_FILE)

    def build_together(self, wanted: Sequence[tuple[Task, Candidate]]) -> None:
        made = {
            id(p): p
            for task, candidate in wanted
            if (p := self.program(task, candidate)) is not None and p.library is None
        }
        share = math.ceil(len(made) / (os.cpu_count() or 1))
        self._submit(list(made.values()), min(PROGRAMS_A_FILE, max(PROGRAMS_A_FILE_OF_MANY, share)))

    def _submit(self, programs: Sequence[Program], a_file: int) -> None:
        if not programs:
            return
        folder = Scratch()
        self.folders.append(folder)
        context = contextvars.copy_context()  # has the compilers
        future = self.builders.submit(context.run, self._build, programs, folder.path, a_file)
        for program in programs:
            program.library = future

    def _build(self, programs: Sequence[Program], folder: Path, a_file: int) -> Path | None:
        """Compile the programs into one library; programs that the compiler refuses are left out."""
        from ait_mlir.lowering.build import build_library, refused_sources

        refused = refused_sources(library_files(programs, a_file), self.target, folder / "check", self.stop)
        if self.stop.is_set():
            return None
        for program in programs:
            program.refused = bool(refused & program.kernels.keys())
        good = [p for p in programs if not p.refused]
        return build_library(library_files(good, a_file), self.target, folder / "library") if good else None

    def is_built(self, task: Task, candidates: Sequence[Candidate]) -> bool:
        programs = [p for candidate in candidates if (p := self.program(task, candidate)) is not None]
        return all(p.library is None or p.library.done() for p in programs)

    def wait(self, seconds: float) -> None:
        building = {p.library for p in self.programs.values() if p is not None and p.library is not None}
        open_ = [future for future in building if not future.done()]
        concurrent.futures.wait(open_, seconds, concurrent.futures.FIRST_COMPLETED)

    def abandon(self) -> None:
        self.stop.set()
        self.builders.shutdown(wait=True, cancel_futures=True)

    def algorithms(self, task: Task, point: Point, candidate: Candidate) -> list[tuple[int, ...]]:
        program = self.program(task, candidate)
        if program is None or program.path is None:
            return []
        with self._card() as card:
            timing, _ = self._timing(task, point, GRAPH_SECONDS, card)
            with self.lanes.apart():
                parts = [int(part) for part in timing.algorithms(str(program.path), program.entry)]
        count = len(next(iter(ALGORITHM_KEYS.values())))
        return [tuple(parts[i : i + count]) for i in range(0, len(parts), count)]

    def _timing(self, task: Task, point: Point, estimate: float, card: int) -> tuple[Any, int]:
        """The runtime's timing object for a task at a point on a card, and the number of consecutive runs that it
        times.
        """
        from ait_mlir.runtime.loading import runtime_library

        runtime = runtime_library(self.target.kind)
        chain, places, copies, inputs = self._workload(task, point, estimate, int(runtime.cache_bytes(card)))
        patterns = _patterns()
        with self.lanes.apart():
            return runtime.make_timing()(card, point, chain, places, copies, len(inputs), *inputs, *patterns), chain

    @contextlib.contextmanager
    def _card(self) -> Generator[int]:
        """A context with a card for exclusive timing; other threads and processes may go on compiling."""
        with self.lanes.card() as card, contextlib.ExitStack() as until_done:
            if self.target.kind == "cuda":
                with self.lanes.apart():
                    waited = until_done.enter_context(alone_on_card(card))
                self.waited += waited
            yield card

    def race(
        self, task: Task, point: Point, candidates: Sequence[Candidate], estimate: float
    ) -> dict[Candidate, Times]:
        programs = [
            (candidate, program) for candidate in candidates if (program := self.program(task, candidate)) is not None
        ]
        with self._card() as card:
            timing, chain = self._timing(task, point, estimate, card)
            with self.lanes.apart():
                return self._race(timing, chain, programs)

    def _race(self, timing: Any, chain: int, programs: Sequence[tuple[Candidate, Program]]) -> dict[Candidate, Times]:
        """The times of all programs that can run."""
        running = [
            candidate
            for candidate, program in programs
            if program.path is not None and not timing.add(str(program.path), program.entry, candidate.algorithm)
        ]
        if not running:
            return {}

        def sample(i: int) -> float:
            seconds: float = timing.sample(i)
            if seconds > SHORT:
                time.sleep(min(LONGEST_REST, self.rest * chain * seconds))
            return seconds

        return dict(zip(running, race(sample, len(running), self.rounds), strict=True))

    def _workload(self, task: Task, point: Point, estimate: float, cache: int) -> tuple[int, int, int, list[Any]]:
        """The number of consecutive runs, the number of copies of inputs and outputs, the number of copies of weights,
        and the input data.
        """
        env = task.environment(point)
        sizes = [_room(v, env) for v in task.graph.block.args]
        weights = sum(tensor_type(p.output).byte_size().evaluate(env) for p in task.graph.params())
        copies = min(LONGEST, max(2, math.ceil(2 * cache / max(weights, 1)))) if weights else 1
        chain = max(USUAL, copies)
        if chain * estimate > GRAPH_SECONDS:
            chain = max(SHORTEST, min(USUAL, int(GRAPH_SECONDS / estimate)))
        moving = sum(sizes) + sum(tensor_type(o.value).byte_size().evaluate(env) for o in task.graph.outputs())
        places = max(1, min(PLACES, cache // 2 // max(moving, 1)))
        inputs = [_tensor(content(v, env)) for v in task.graph.block.args]
        return chain, places, min(copies, chain), inputs


def timing_cards() -> list[int]:
    """The cards of `MEASURE_DEVICES` of the same model as the first; a warning names the others."""
    from ait_mlir.host.card import card_name

    cards = MEASURE_DEVICES.get()
    names = {card: card_name(card) for card in cards}
    others = [f"{card} ({name})" for card, name in names.items() if name != names[cards[0]]]
    if others:
        callers.warn(
            f"kernels are timed on cards like {cards[0]} ({names[cards[0]]}) alone, not on {', '.join(others)}"
        )
    return [card for card, name in names.items() if name == names[cards[0]]]


def library_files(programs: Sequence[Program], a_file: int = PROGRAMS_A_FILE) -> dict[str, str]:
    """The sources of a library of programs: one file for each device kernel, and a few files for all host code."""
    kernels = {n: t for p in programs for n, t in p.kernels.items()}
    files = {n: t for n, t in kernels.items() if not n.endswith(".cc")}
    pieces = [*(t for n, t in kernels.items() if n.endswith(".cc")), *(p.table for p in programs)]
    for i in range(0, len(pieces), a_file):
        files[f"candidates_{i}.cc"] = "\n".join(pieces[i : i + a_file])
    return files


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    from tvm_ffi import from_dlpack

    return cast(Any, from_dlpack)(array)


@functools.cache
def _patterns() -> list[Any]:
    """The contents of constants for each dtype, in the order of the ABI's dtype numbers."""
    return [_tensor(random_bytes(t.name, 1 << 20)) for t in sorted(BY_IR.values(), key=lambda t: t.abi)]


def content(value: SSAValue, env: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """The bytes of an input at given dims: the values that one of its users requires for timing, else random."""
    from ait_mlir.dtypes import numpy_dtype

    view, dtype = stored(value), BY_IR[tensor_type(value).element_type].name
    for use in value.uses:
        op = use.operation
        if isinstance(op, Cost) and (found := op.timed_values(use.index, env)):
            shape, strides = ([e.evaluate(env) for e in part] for part in (view.dims, view.strides))
            memory = np.zeros(_room(value, env), np.uint8)
            kind = numpy_dtype(dtype)
            tensor = np.ndarray(shape, kind, memory, strides=[s * kind.itemsize for s in strides])
            tensor[...] = np.reshape(found, shape)
            return memory
    return random_bytes(dtype, _room(value, env))


def _room(value: SSAValue, env: Mapping[str, int]) -> int:
    """The bytes of memory that an input takes."""
    view, t = stored(value), tensor_type(value)
    return extent(view.dims, view.strides, EMPTY_SCOPE).evaluate(env) * BY_IR[t.element_type].bytes


def random_bytes(dtype: str, size: int) -> np.ndarray[Any, Any]:
    """`size` bytes of a tensor with typical numbers: normally distributed, or 0 and 1 for integers."""
    from ait_mlir.dtypes import numpy_dtype

    kind = numpy_dtype(dtype)
    rng = np.random.default_rng(_SEED)
    count = max(1, min(size // kind.itemsize, 1 << 20))
    if not BY_NAME[dtype].is_float:
        data = rng.integers(0, 2, count).astype(kind)
    else:
        data = rng.standard_normal(count, dtype=np.float32).astype(kind)
    return np.resize(data.view(np.uint8), max(size, 1))


@functools.cache
def _context() -> Context:
    from ait_mlir.ir.context import context

    return context()


def plan(module: ModuleOp) -> None:
    """Run the passes from `selected` to `planned`."""
    from ait_mlir.ir.pipeline import run_passes
    from ait_mlir.passes.parse import parse_passes
    from ait_mlir.passes.pipelines import passes_between

    run_passes(_context(), module, parse_passes(passes_between("selected", "planned", streams=0)), verify=False)


__all__ = ["DeviceMeter", "Meter", "Program", "content", "plan", "random_bytes"]
