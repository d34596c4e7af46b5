"""Execution plans: the choice of a kernel for each op of a graph, and the plan's compiled library."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar, cast

import tvm_ffi
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.scan import tensor_ops
from ait_mlir.dialects.ait.traits import ContractionExtents, Cost
from ait_mlir.dialects.ait.types import DimsAttr, scope_of, tensor_type
from ait_mlir.dims import Dim, Expr, Scope
from ait_mlir.driver import Arrays, compile_module, emit, literal_array, run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.graph.enums import behavior_note, heur_mode, numerical_note
from ait_mlir.graph.errors import cudnnGraphNotSupportedError
from ait_mlir.host.cache import uses_kept
from ait_mlir.lowering.build import build_with
from ait_mlir.lowering.candidates import Candidate, candidates_of, cut_in_place
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.module_target import make_target, target_of
from ait_mlir.lowering.target import Target
from ait_mlir.lowering.toolchain import TargetKind, default_arch, toolchain
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.data import CPU, Arguments
from ait_mlir.runtime.loading import runtime_library
from ait_mlir.selection.select import needs_kernel
from ait_mlir.selection.shortlist import best_by_estimate

T = TypeVar("T")

CONFIGS = 4
"""The number of configurations of a kernel that become plans."""
MOST_PLANS = 16
SLOWER = 1.25
"""A plan that is not compiled is worth the wait if the estimate of the compiled one is this many times its own."""
KEPT = 256
"""Modules and loaded libraries that the process keeps."""


class Compiled:
    """A loaded library."""

    def __init__(self, library: Path, kind: TargetKind, ordinal: int, constants: Arrays, planned: str) -> None:
        self._module: Any = runtime_library(kind).create(str(library), 1, ordinal, True, False)
        if constants:
            arguments = Arguments(CPU)
            values = [arguments.add(f"constant '{name}'", array) for name, array in constants.items()]
            self._module.set_constants(False, False, 0, list(constants), *values)
        self.launch: Any = self._module.get_function("launch_in")
        """(stream, workspace, bytes, dims, number of inputs, addresses of the inputs and of the outputs...)"""
        self.planned = planned
        """The IR in the phase `planned`."""
        self.path = library

    def at(self, dims: Sequence[int]) -> Sized:
        """The library for these dims of its module, in order."""
        shape: Any = cast(Any, tvm_ffi).Shape(list(dims))
        return Sized(self, tuple(dims), shape, int(self._module.arena_bytes(shape)))

    def synchronize(self, stream: int) -> None:
        """Wait for the runs on a stream."""
        self._module.sync(stream)


@dataclass(frozen=True)
class Sized:
    """A library with given dims, ready for `execute`, and the bytes of workspace that it needs."""

    library: Compiled
    dims: tuple[int, ...]
    shape: Any
    """The dims as an argument of the library."""
    workspace: int


@dataclass
class Plan:
    """A choice of kernels for a graph: for each op of the fused module, by its number, a candidate."""

    mode: heur_mode
    candidates: Mapping[int, Candidate]
    heaviest: int
    """The number of the op whose kernel names the plan."""
    op_name: str
    has_matrices: bool
    """Whether the plan computes products of f16 or bf16."""
    rounds: bool
    """Whether a card may round operands of f32 to TF32."""
    ops: tuple[str, ...]
    """The names of the ops, by the numbers that are keys of `candidates`."""
    planner: Planner
    dims: tuple[int, ...] = ()
    """The dims of the planner's module for the graph."""
    compiled: dict[Any, Sized] = field(default_factory=dict[Any, Sized])
    """The compiled libraries, by the numbers of scalars for which the code is specialised."""
    file: bytes | None = None
    """The artifact of a plan for a device that this machine does not have."""
    error: AitError | None = None

    @property
    def target(self) -> Target:
        return self.planner.target

    @property
    def is_measured(self) -> bool:
        return self.mode is heur_mode.B

    @property
    def name(self) -> str:
        """The heuristic, the heaviest op and its kernel: `A:gemm:openblas`."""
        candidate = self.candidates.get(self.heaviest)
        kernel = "measured" if self.is_measured else "native" if candidate is None else candidate.describe()
        return f"{self.mode.name}:{self.op_name}:{kernel.replace(' ', '')}"

    @property
    def providers(self) -> set[str]:
        return {provider for f in self.candidates.values() for provider, _ in f.kernels}

    @property
    def numerical_notes(self) -> set[numerical_note]:
        if not self.target.is_gpu:
            return set()
        found = {numerical_note.TENSOR_CORE} if self.has_matrices or self.rounds else set[numerical_note]()
        return found | ({numerical_note.DOWN_CONVERT_INPUTS} if self.rounds else set())

    @property
    def behavior_notes(self) -> set[behavior_note]:
        found = {behavior_note.RUNTIME_COMPILATION}
        if self.target.is_gpu:
            found.add(behavior_note.SUPPORTS_CUDA_GRAPH_NATIVE_API)
        return found | ({behavior_note.CUBLASLT_DEPENDENCY} if "cublaslt" in self.providers else set())

    @property
    def seconds(self) -> float:
        """The estimated seconds of the plan's kernels, at the dims for which it was made."""
        return sum(f.seconds for f in self.candidates.values())

    @property
    def key(self) -> tuple[object, ...]:
        return self.is_measured, tuple(sorted((i, f.text) for i, f in self.candidates.items()))


class Planner:
    """The plans of one module for one device. The module is in the phase `imported`."""

    def __init__(self, module: ModuleOp, kind: TargetKind, ordinal: int = 0, arch: str = "") -> None:
        self.target = make_target(kind, arch or default_arch(kind))
        self.ordinal = ordinal
        self.text = str(module)
        self.module = module
        key = (self.text, self.target.kind, self.target.arch)
        fused = _kept_modules.get(key)
        if fused is None:
            fused = run_to_phase(module.clone(), "fused", CompileOptions(kind, self.target.arch))
            fused = _kept_modules.keep(key, fused)
        self.fused: ModuleOp = fused
        self._plans: Kept[list[Plan]] = Kept(KEPT)
        self.companion: Planner | None = None
        """The planner of a module for more sizes, which is compiled at the same time."""

    def plans(self, mode: heur_mode, dims: tuple[int, ...] = ()) -> list[Plan]:
        """The plans of a heuristic, in order, without repetitions, for these dims of the module.

        Heuristic A uses estimates for these dims. A compiled plan comes first unless its estimate is more than `SLOWER`
        times the best. Raises `cudnnGraphNotSupportedError` if an op has no kernel.
        """
        key = mode, dims if mode is heur_mode.A else ()
        made = self._plans.get(key)
        if made is None:
            fused = with_hints(self.fused, dims) if key[1] else self.fused
            made = list({plan.key: plan for plan in self._made(mode, fused)}.values())
            made = self._plans.keep(key, made)
        if key[1]:
            ready = next((p for p in made if self._library_key(p) in _kept_libraries), made[0])
            if ready.seconds <= SLOWER * made[0].seconds:
                made = [ready, *(p for p in made if p is not ready)]
        return [replace(plan, dims=dims, compiled={}) for plan in made]

    def seconds(self, dims: tuple[int, ...] = ()) -> float:
        """The estimated seconds with the best kernel for each op, at these dims of the module or at its hints."""
        found = self._candidates(with_hints(self.fused, dims) if dims else self.fused)
        return sum(best_by_estimate(candidates).seconds for _, candidates in found.values())

    def _made(self, mode: heur_mode, fused: ModuleOp) -> Iterator[Plan]:
        numbered = self._candidates(fused)
        if not numbered:
            yield self._plan(heur_mode.A, {}, 0, "copy")
            return
        heaviest = max(numbered, key=lambda i: (_work(numbered[i][0]), -i))
        op_name = numbered[heaviest][0].name.removeprefix("ait.")
        for candidates in self._choices(mode, numbered, heaviest):
            yield self._plan(mode, candidates, heaviest, op_name)

    def _plan(self, mode: heur_mode, candidates: Mapping[int, Candidate], heaviest: int, op_name: str) -> Plan:
        narrow = any(_multiplies_narrow(op) for op in _ops(self.fused))
        rounds = any("tf32" in op.properties for op in _ops(self.fused))
        return Plan(mode, candidates, heaviest, op_name, narrow, rounds, self._names(), self)

    def _names(self) -> tuple[str, ...]:
        return tuple(op.name for op in _ops(self.fused))

    def fitted(self, plan: Plan, dims: tuple[int, ...]) -> Plan:
        """A plan, made for the graph with other scalars, adapted to this module, in which a scalar of 1 may remove ops.

        The heaviest op keeps its kernel if that is a candidate of it; the others get theirs by the plan's heuristic.
        """
        numbered = self._candidates(self.fused)
        if plan.ops == self._names() or not numbered:
            return replace(plan, planner=self, dims=dims)
        heaviest = max(numbered, key=lambda i: (_work(numbered[i][0]), -i))
        candidates = next(self._choices(plan.mode, numbered, heaviest))
        wanted = plan.candidates.get(plan.heaviest)
        if candidates and wanted in numbered[heaviest][1]:
            candidates[heaviest] = wanted
        return replace(self._plan(plan.mode, candidates, heaviest, plan.op_name), dims=dims)

    def _candidates(self, fused: ModuleOp) -> dict[int, tuple[Operation, list[Candidate]]]:
        found: dict[int, tuple[Operation, list[Candidate]]] = {}
        for i, op in enumerate(_ops(fused)):
            if not needs_kernel(op):
                continue
            candidates = list(candidates_of(op, self.target, CONFIGS, 1))
            if not candidates:
                types = ", ".join(map(str, op.operand_types))
                raise cudnnGraphNotSupportedError(f"no kernel for {op.name} on {self.target.kind} ({types})")
            found[i] = (op, candidates)
        return found

    def _choices(
        self, mode: heur_mode, numbered: Mapping[int, tuple[Operation, list[Candidate]]], heaviest: int
    ) -> Iterator[dict[int, Candidate]]:
        best = {i: best_by_estimate(candidates) for i, (_, candidates) in numbered.items()}
        if mode is heur_mode.B:
            yield {}
        elif mode is heur_mode.FALLBACK:
            yield {i: _plain(candidates) or best[i] for i, (_, candidates) in numbered.items()}
        else:
            yield best
            others = sorted(numbered[heaviest][1], key=lambda f: (f.only_timed, f.seconds, len(f.kernels)))
            for candidate in others[: MOST_PLANS - 1]:
                yield {**best, heaviest: candidate}

    def kernels(self) -> list[tuple[str, list[dict[str, int]]]]:
        """The kernels that can run the whole heaviest op, with their configurations, in order."""
        numbered = self._candidates(self.fused)
        heaviest = max(numbered, key=lambda i: (_work(numbered[i][0]), -i), default=None)
        found: dict[str, list[dict[str, int]]] = {}
        for candidate in () if heaviest is None else numbered[heaviest][1]:
            if candidate.cut is None and len(candidate.kernels) == 1:
                provider, config = candidate.kernels[0]
                found.setdefault(provider, []).append(dict(config))
        return list(found.items())

    def plan_with(self, provider: str, config: Mapping[str, int], dims: tuple[int, ...]) -> Plan | None:
        """The plan with this kernel for the heaviest op, and the best by estimate for other ops; None if it is not
        a candidate."""
        numbered = self._candidates(self.fused)
        heaviest = max(numbered, key=lambda i: (_work(numbered[i][0]), -i), default=None)
        if heaviest is None:
            return None
        best = {i: best_by_estimate(candidates) for i, (_, candidates) in numbered.items()}
        wanted = Candidate.of(None, [(provider, dict(config))])
        if wanted not in numbered[heaviest][1]:
            return None
        op_name = numbered[heaviest][0].name.removeprefix("ait.")
        return replace(self._plan(heur_mode.A, {**best, heaviest: wanted}, heaviest, op_name), dims=dims)

    # ** building **

    def compiled(self, plan: Plan) -> Compiled:
        """The library of a plan, from this process, the cache of objects, or the compiler.

        Raises `cudnnGraphNotSupportedError` if the plan cannot run the graph, `CompileError`, `ToolchainError`.
        """
        key = self._library_key(plan)
        found = _kept_libraries.get(key)
        if found is None:
            beside = threading.Thread(target=self._compile_companion, args=(plan.mode,))
            beside.start()
            try:
                found = _kept_libraries.keep(key, self._build(plan))
            finally:
                beside.join()
        return found

    def _library_key(self, plan: Plan) -> object:
        return self.text, self.target.kind, self.target.arch, self.ordinal, plan.key

    def _compile_companion(self, mode: heur_mode) -> None:
        """Compile the library for graphs with other sizes in advance. An error is reported later, by such a graph."""
        if self.companion is not None:
            with contextlib.suppress(AitError):
                self.companion.compiled(self.companion.plans(mode)[0])

    def pinned(self, plan: Plan) -> ModuleOp:
        """The fused module with the kernels of a plan."""
        module = self.fused.clone()
        for i, op in enumerate(list(_ops(module))):
            candidate = plan.candidates.get(i)
            if candidate is None:
                continue
            for part, attr in zip(cut_in_place(op, candidate.cut), candidate.attrs(), strict=True):
                part.attributes["kernel"] = attr
        return module

    def planned(self, plan: Plan) -> ModuleOp:
        """The module of a plan in the phase `planned`."""
        return run_to_phase(self.pinned(plan), "planned", self._options(plan))

    def _options(self, plan: Plan) -> CompileOptions:
        """The compile options for the pinned module of a plan."""
        return CompileOptions(self.target.kind, self.target.arch, start="fused", measure=plan.is_measured)

    def _build(self, plan: Plan) -> Compiled:
        try:
            module = self.planned(plan)
        except (AitError, ValueError) as error:
            raise cudnnGraphNotSupportedError(f"plan {plan.name} cannot run the graph: {error}") from error
        code = emit(module)
        with TemporaryDirectory(prefix="ait_graph_") as folder, uses_kept():
            target = target_of(module)
            tools, label = toolchain(target.kind, target.arch), f"compiling for {target.kind}"
            library = build_with(tools, code.joined(), folder, label)
            constants = {name: literal_array(x) for name, x in code.literals.items()}
            kind = self.target.kind
            return Compiled(library, kind, self.ordinal, constants, str(module))

    def artifact(self, plan: Plan) -> bytes:
        """The artifact of a plan: library, IR and constants in one file."""
        with TemporaryDirectory(prefix="ait_graph_") as folder:
            path = Path(folder) / "graph.ait"
            compile_module(self.pinned(plan), self._options(plan), output=path, name="graph")
            return path.read_bytes()


def with_hints(module: ModuleOp, dims: Sequence[int]) -> ModuleOp:
    """A copy of a module with the given dims as hints, so that estimates are made for them."""

    def hinted(dim: Dim, size: int | None) -> Dim:
        return replace(dim, hints=(size,)) if size else dim

    new = module.clone()
    for graph in new.ops:
        if isinstance(graph, GraphOp):
            given = iter(dims)
            graph.properties["dims"] = DimsAttr(
                Scope(
                    hinted(d, next(given, None)) if d.upper is None or d.jagged is not None else d for d in graph.scope
                )
            )
    return new


def _ops(module: ModuleOp) -> Iterator[Operation]:
    for graph in module.ops:
        if isinstance(graph, GraphOp):
            yield from tensor_ops(graph.block)


def _plain(candidates: Sequence[Candidate]) -> Candidate | None:
    """The compiler's own kernel for the whole op, in its first configuration."""
    return next((f for f in candidates if f.cut is None and all(p == "native" for p, _ in f.kernels)), None)


def _work(op: Operation) -> int:
    """Operations that an op executes."""
    if not isinstance(op, Cost):
        return 0
    flops: Expr = op.flops()
    return flops.evaluate(estimate_env(scope_of(op)))


def _multiplies_narrow(op: Operation) -> bool:
    if not isinstance(op, ContractionExtents | AttentionOp):
        return False
    return str(tensor_type(op.operands[0]).element_type) in ("f16", "bf16")


class Kept(Generic[T]):
    """The most recently used values of the process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._values

    def keep(self, key: object, value: T) -> T:
        """Keep a value unless the key has one; returns the kept value."""
        with self._lock:
            kept = self._values.setdefault(key, value)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return kept


_kept_modules: Kept[ModuleOp] = Kept(KEPT)
_kept_libraries: Kept[Compiled] = Kept(KEPT)
