"""The steps from a graph of nodes to compiled plans: validate, lower, plan, check, build; and the choice of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, TypeVar, cast

from ait_mlir.errors import AitError, InputError
from ait_mlir.graph import programs, validation
from ait_mlir.graph.binding import Binding
from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.copying import copy_with
from ait_mlir.graph.enums import behavior_note, build_plan_policy, heur_mode, knob_type, numerical_note
from ait_mlir.graph.errors import StepError, cudnnGraphNotSupportedError
from ait_mlir.graph.execution import Runner
from ait_mlir.graph.handle import Handle, checked
from ait_mlir.graph.places import make_binding
from ait_mlir.graph.plans import Plan, Sized
from ait_mlir.graph.programs import Program
from ait_mlir.graph.ragged import most_rows
from ait_mlir.graph.serialization import Loaded
from ait_mlir.graph.structure import Structure, structure_of
from ait_mlir.graph.tensor import whole_numbers
from ait_mlir.runtime.data import torch_module

T = TypeVar("T")
NUMBERS_KEPT = 256
"""The number of combinations of scalars whose libraries a plan remembers."""


class Step(IntEnum):
    """The step that a graph has reached; each step requires the previous step."""

    OPEN = 0
    VALIDATED = 1
    LOWERED = 2
    PLANNED = 3
    BUILT = 4


_CALLS = {
    Step.VALIDATED: "validate()",
    Step.LOWERED: "build_operation_graph()",
    Step.PLANNED: "create_execution_plans()",
    Step.BUILT: "build_plans()",
}


@dataclass(frozen=True)
class knob:
    """A number by which the kernel of an engine is chosen: every `stride`-th from `min_value` to `max_value`."""

    type: Any
    max_value: int
    min_value: int
    stride: int


class Compilation:
    """The steps from a graph to compiled plans, and its plans: a caller lists, excludes, selects and times them."""

    def __init__(self, graph: GraphBuilder, may_override: bool = False) -> None:
        self.graph = graph
        self.may_override = may_override
        self.step = Step.OPEN
        self._structure: Structure | None = None
        self.program: Program | None = None
        """The program that the plans run; `_dims` are its dims for this graph."""
        self._dims: tuple[int, ...] = ()
        self.plans: list[Plan] = []
        self.index = 0
        """The number of the selected plan."""
        self._filters: list[Callable[[Plan], str | None]] = []
        self._runner: Runner | None = None
        self._shapes: dict[object, Compilation] = {}
        self._own_workspace: Any = None
        """Copies of the graph with other dims."""
        self.loaded: Loaded | None = None
        """The loaded graph, if this graph was deserialized."""

    # ** steps **

    def validate(self) -> None:
        """Infer dims, strides and data types, and check the graph.

        Raises `GraphError` for an invalid graph, and `cudnnGraphNotSupportedError` for a missing kernel, with the node
        and the tensor.
        """
        if self.step > Step.VALIDATED:
            raise StepError(f"graph '{self.graph.name}': validate() after build_operation_graph()")
        self.graph.ordered = validation.check(
            self.graph.nodes, self.graph.io_data_type, self.graph.intermediate_data_type
        )
        for t in self.graph.tensors:
            self.graph.uid_of(t)
        self.step = Step.VALIDATED

    def build_operation_graph(self) -> None:
        """Validate the graph if that was not done, and write it as `ait` ops, unless a program of its structure exists.

        Later changes of the graph raise.
        """
        if self.step is Step.OPEN:
            self.validate()
        self.need(Step.VALIDATED, "build_operation_graph()", exactly=True)
        self._structure = structure_of(self.graph)
        self.program, dims = programs.find(self.graph, self._structure, self.graph.code_scalars())
        self._dims = (*dims, *self.most_rows)
        self.graph.is_open = False
        self.step = Step.LOWERED

    def create_execution_plans(self, heuristics: Sequence[heur_mode] | heur_mode | None = None) -> None:
        """Make the plans of these heuristics, in order: A (estimates), B (measured), FALLBACK (our plain kernels)."""
        self.need(Step.LOWERED, "create_execution_plans()")
        modes: list[Any] = list(heuristics or [heur_mode.A]) if isinstance(heuristics, list | tuple) else [heuristics]
        modes = [heur_mode.A] if heuristics is None else modes
        for mode in modes:
            if not isinstance(mode, heur_mode):
                raise cudnnGraphNotSupportedError(f"{mode!r} is no heuristic, expected one of cudnn.heur_mode")
        for mode in modes:
            known = {plan.key for plan in self.plans}
            program, dims = self._program_of(mode)
            self.plans += [p for p in program.planner.plans(mode, dims) if p.key not in known]
        self.step = max(self.step, Step.PLANNED)

    def check_support(self, *_: Any) -> None:
        """Raise `cudnnGraphNotSupportedError` if all plans are deselected."""
        self.need(Step.PLANNED, "check_support()")
        if not self._allowed():
            reasons = "; ".join(f"{p.name}: {self._barred(p)}" for p in self.plans)
            raise cudnnGraphNotSupportedError(f"graph '{self.graph.name}' has no plan left: {reasons}")

    def build_plans(self, policy: Any = build_plan_policy.HEURISTICS_CHOICE) -> None:
        """Compile the first plan that can be built, or all with `build_plan_policy.ALL`."""
        self.need(Step.PLANNED, "build_plans()")
        self.check_support()
        if not isinstance(policy, build_plan_policy):
            raise InputError(f"policy is {policy!r}, expected one of cudnn.build_plan_policy")
        built: list[int] = []
        for i in self._allowed():
            try:
                self._make(self.plans[i])
            except AitError as error:
                self.plans[i].error = error
                continue
            if self._barred(self.plans[i]) is None:
                built.append(i)
                if policy is build_plan_policy.HEURISTICS_CHOICE:
                    break
        if not built:
            reasons = "; ".join(f"{p.name}: {p.error or self._barred(p)}" for p in self.plans)
            raise cudnnGraphNotSupportedError(f"graph '{self.graph.name}': no plan could be built: {reasons}")
        self._select(built[0])

    def build(self, heuristics: Sequence[heur_mode] | heur_mode | None = None) -> None:
        """All steps: validate, lower, plan, check and build."""
        self.validate()
        self.build_operation_graph()
        self.create_execution_plans(heuristics)
        self.check_support()
        self.build_plans()

    # ** the selected plan **

    @property
    def runner(self) -> Runner:
        """The runner of the selected plan."""
        if self._runner is None:
            assert self.graph.properties is not None, "execute() needs build_plans()"
            raise StepError(
                f"graph '{self.graph.name}' is compiled for {self.graph.properties.arch}, which this machine does not "
                "have: serialize() it, and deserialize() it where that device is"
            )
        return self._runner

    @property
    def last_numbers(self) -> tuple[float, ...]:
        """The numbers of scalars that are part of the code, of the last execution."""
        return self.scalar_key if self._runner is None else self._runner.last_numbers

    def overridden(
        self,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> Compilation:
        """The same graph with other dims, built with the same heuristic."""
        if not self.may_override:
            raise StepError(f"graph '{self.graph.name}' has fixed shapes: make it with is_override_shape_enabled=True")
        try:
            uids, shapes = list(override_uids or ()), list(override_shapes or ())
            strides = list(override_strides or ([()] * len(uids)))
        except TypeError as error:
            raise InputError(f"override_uids, override_shapes and override_strides are lists: {error}") from None
        if not len(uids) == len(shapes) == len(strides):
            raise InputError(
                f"{len(uids)} override_uids, {len(shapes)} override_shapes, {len(strides)} override_strides: expected "
                "as many of each"
            )
        key = tuple(
            (u, whole_numbers(d, f"the override_shape of UID {u}"), whole_numbers(s, f"the override_stride of UID {u}"))
            for u, d, s in zip(uids, shapes, strides, strict=True)
        )
        if key not in self._shapes:
            other = Compilation(copy_with(self.graph, {u: (d, s) for u, d, s in key}))
            other.build([self.plans[self.index].mode])
            self._shapes[key] = other
        return self._shapes[key]

    def workspace_for(self, workspace: Any, declared: int) -> Any:
        """The caller's workspace, or a larger one of our own.

        That is for a torch tensor with the `declared` bytes, enough without overrides, but too few for these shapes.
        """
        torch = torch_module()
        if torch is None or not isinstance(workspace, torch.Tensor):
            return workspace
        if not declared <= workspace.nbytes < self.runner.workspace:
            return workspace
        if self._own_workspace is None or self._own_workspace.device != workspace.device:
            self._own_workspace = torch.empty(self.runner.workspace, dtype=torch.uint8, device=workspace.device)
        return self._own_workspace

    # ** inside **

    def need(self, step: Step, call: str, exactly: bool = False) -> None:
        if self.step < step:
            raise StepError(f"graph '{self.graph.name}': {call} needs {_CALLS[step]} first")
        if exactly and self.step > step:
            raise StepError(f"graph '{self.graph.name}': {call} was called already")

    def _program_of(self, mode: heur_mode) -> tuple[Program, tuple[int, ...]]:
        """The program for a heuristic, and its dims. Heuristic B measures, so its program is for exactly the sizes of
        this graph.
        """
        assert self.program is not None
        if mode is heur_mode.B and self.program.is_general:
            program, dims = programs.exact(self.graph, self.graph.code_scalars())
            return program, (*dims, *self.most_rows)
        return self.program, self._dims

    @property
    def most_rows(self) -> tuple[int, ...]:
        """The dims of the ragged tensors, two for each, with all sequences at full length."""
        ragged = [t for side in self.graph.sides() for t in side if t.ragged_offset is not None]
        return tuple(most_rows(t) for t in ragged for _ in range(2))

    @cached_property
    def binding(self) -> Binding:
        """The binding for `execute`: inputs and outputs of the module, then the scalars that are part of the code."""
        return make_binding(self.graph)

    @property
    def scalar_key(self) -> tuple[float, ...]:
        return tuple(self.graph.code_scalars().values())

    def plan(self, index: int) -> Plan:
        self.need(Step.PLANNED, "a plan by index")
        is_number = isinstance(index, int) and not isinstance(index, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_number or not 0 <= index < len(self.plans):
            raise InputError(
                f"graph '{self.graph.name}' has no plan {index!r}; it has plans 0 to {len(self.plans) - 1}"
            )
        return self.plans[index]

    def _barred(self, plan: Plan) -> str | None:
        return next((reason for f in self._filters if (reason := f(plan)) is not None), None)

    def _allowed(self) -> list[int]:
        return [i for i, plan in enumerate(self.plans) if self._barred(plan) is None]

    def _compiled(self, plan: Plan, scalars: tuple[float, ...] | None = None) -> Sized:
        """The library of a plan for these numbers of the scalars that are part of the code; compiled now, unless
        existing code takes them as arguments."""
        own = self.scalar_key
        key = own if scalars is None else scalars
        if key not in plan.compiled:
            if len(plan.compiled) >= NUMBERS_KEPT:
                plan.compiled = {k: v for k, v in plan.compiled.items() if k == own}
            fitted = self.fitted(plan, key)
            library = fitted.planner.compiled(fitted)
            plan.compiled[key] = library.at(fitted.dims)
            if self.graph.kernel_cache is not None:
                self.graph.kernel_cache.add(library.path)
        return plan.compiled[key]

    @property
    def _is_here(self) -> bool:
        """Whether this machine has the device of the graph."""
        return self.graph.properties is None or self.graph.properties.is_here

    def _make(self, plan: Plan) -> None:
        """Compile a plan: a library of this process, or an artifact for a device that this machine does not have."""
        if self._is_here:
            self._compiled(plan)
        elif plan.file is None:
            plan.file = plan.planner.artifact(plan)

    def fitted(self, plan: Plan, numbers: tuple[float, ...]) -> Plan:
        """The plan for the module with these numbers of the scalars that are part of the code."""
        if numbers == self.scalar_key:
            return plan
        scalars = dict(zip(self.graph.code_scalars(), numbers, strict=True))
        is_exact = plan.mode is heur_mode.B
        program, dims = (
            programs.exact(self.graph, scalars) if is_exact else programs.find(self.graph, self._structure, scalars)
        )
        return program.planner.fitted(plan, (*dims, *self.most_rows))

    def runner_of(self, plan: Plan) -> Runner:
        return Runner(
            self._compiled(plan), self.binding, self.scalar_key, lambda numbers: self._compiled(plan, numbers)
        )

    def run_with(self, loaded: Loaded) -> None:
        """Run a loaded graph in place of plans."""
        self.loaded = loaded
        self._runner = Runner(loaded.compiled, loaded.binding, loaded.numbers, loaded.with_numbers)
        self.graph.is_open = False
        self.step = Step.BUILT

    def _select(self, index: int) -> None:
        self.index = index
        self._runner = self.runner_of(self.plans[index]) if self._is_here else None
        self.step = Step.BUILT

    def stream(self, handle: Handle | None) -> int:
        chosen = handle if handle is not None else self.graph.handle
        if chosen is None:
            return 0
        if not isinstance(chosen, Handle) or chosen.is_destroyed:  # pyright: ignore[reportUnnecessaryIsInstance]
            checked(chosen)
        if chosen.device != self.runner.binding.device:
            raise InputError(
                f"the handle is of {chosen.device}, but graph '{self.graph.name}' runs on {self.runner.binding.device}"
            )
        return chosen.stream

    # ** plans **

    def get_execution_plan_count(self) -> int:
        """The number of plans; 0 before create_execution_plans."""
        return len(self.plans)

    def get_plan_name_at_index(self, index: int) -> str:
        """The name of a plan: heuristic, heaviest op and its kernel."""
        return self.plan(index).name

    def get_plan_name(self) -> str:
        """The name of the selected plan."""
        self.need(Step.PLANNED, "get_plan_name()")
        return self.plans[self.index].name

    def build_plan_at_index(self, index: int) -> None:
        """Compile one plan, and select it."""
        plan = self.plan(index)
        if (reason := self._barred(plan)) is not None:
            raise cudnnGraphNotSupportedError(f"plan {index} ({plan.name}) is deselected: {reason}")
        self._make(plan)
        self._select(index)

    def get_engine_and_knobs_at_index(self, index: int) -> tuple[str, dict[str, int]]:
        """The provider and the configuration of the heaviest op's kernel, as arguments of `create_execution_plan`."""
        plan = self.plan(index)
        candidate = plan.candidates.get(plan.heaviest)
        if candidate is None or len(candidate.kernels) != 1:
            raise cudnnGraphNotSupportedError(f"plan {index} ({plan.name}) is not described by one kernel")
        provider, config = candidate.kernels[0]
        return provider, dict(config)

    def get_engine_count(self) -> int:
        """The number of engines: the kernels that can run the heaviest op."""
        return len(self._engines("get_engine_count()"))

    def get_knobs_for_engine(self, engine: int) -> list[knob]:
        """The knobs of an engine: KERNEL_CFG chooses one of its configurations."""
        _, configs = self._engine(engine, "get_knobs_for_engine()")
        return [knob(knob_type.KERNEL_CFG, len(configs) - 1, 0, 1)]

    def _engines(self, call: str) -> list[tuple[str, list[dict[str, int]]]]:
        self.need(Step.LOWERED, call)
        return self._program_of(heur_mode.A)[0].planner.kernels()

    def _engine(self, index: int, call: str) -> tuple[str, list[dict[str, int]]]:
        engines = self._engines(call)
        if isinstance(index, bool) or not 0 <= index < len(engines):
            raise InputError(f"graph '{self.graph.name}' has no engine {index!r}; it has {len(engines)}, from 0 on")
        return engines[index]

    def create_execution_plan(self, engine_id: str | int, knobs: Mapping[Any, int] | None = None) -> None:
        """Append the plan with this kernel for the heaviest op: an engine by its number with the knobs of
        `get_knobs_for_engine`, or both from `get_engine_and_knobs_at_index`."""
        self.need(Step.LOWERED, "create_execution_plan()")
        if not isinstance(knobs or {}, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"knobs are {knobs!r}, expected a dict from get_engine_and_knobs_at_index()")
        if isinstance(engine_id, int):
            engine_id, configs = self._engine(engine_id, "create_execution_plan()")
            given = dict(knobs or {})
            number = given.pop(knob_type.KERNEL_CFG, 0)
            if given or number not in range(len(configs)):
                raise cudnnGraphNotSupportedError(
                    f"graph '{self.graph.name}': the knobs of engine {engine_id!r} are {knobs!r}; it has KERNEL_CFG "
                    f"from 0 to {len(configs) - 1}"
                )
            knobs = configs[number]
        program, dims = self._program_of(heur_mode.A)
        plan = program.planner.plan_with(engine_id, knobs or {}, dims)
        if plan is None:
            raise cudnnGraphNotSupportedError(
                f"graph '{self.graph.name}' has no kernel {engine_id!r} with {dict(knobs or {})}"
            )
        if all(plan.key != known.key for known in self.plans):
            self.plans.append(plan)
        self.step = max(self.step, Step.PLANNED)

    def get_workspace_size(
        self,
        handle: Handle | None = None,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> int:
        """The bytes of workspace that `execute` needs with the selected plan, for these shapes."""
        self.need(Step.BUILT, "get_workspace_size()")
        is_other = override_uids is not None or override_shapes is not None
        target = self.overridden(override_uids, override_shapes, override_strides) if is_other else self
        return target.runner.workspace

    def get_workspace_size_plan_at_index(
        self,
        index: int,
        handle: Handle | None = None,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> int:
        """The bytes of workspace that a built plan needs. Other shapes are possible only for the selected plan."""
        plan = self.plan(index)
        if override_uids is not None or override_shapes is not None:
            if index != self.index:
                raise cudnnGraphNotSupportedError(
                    f"plan {index} is not selected: only plan {self.index} is for other shapes"
                )
            return self.overridden(override_uids, override_shapes, override_strides).runner.workspace
        compiled = plan.compiled.get(self.scalar_key)
        if compiled is None:
            raise StepError(f"plan {index} ({plan.name}) is not built: call build_plan_at_index({index})")
        return Runner.bytes_of(compiled, self.binding)

    def deselect_workspace_greater_than(self, workspace_limit: int) -> None:
        """Exclude plans that need more workspace, in bytes."""
        if isinstance(workspace_limit, bool) or not isinstance(workspace_limit, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"the limit of the workspace is {workspace_limit!r}, expected bytes")

        def reason(plan: Plan) -> str | None:
            found = [Runner.bytes_of(c, self.binding) for c in plan.compiled.values()]
            return f"needs {max(found)} bytes of workspace" if found and max(found) > workspace_limit else None

        self._filter(reason)

    def deselect_engines(self, engine_names: Sequence[str]) -> None:
        """Exclude plans whose name contains one of these strings."""
        names = _listed(engine_names, str, "engine_names")
        self._filter(lambda plan: next((f"its name contains {n!r}" for n in names if n in plan.name), None))

    def select_numeric_notes(self, notes: Sequence[Any]) -> None:
        """Keep the plans that have all of these notes."""
        found = _listed(notes, numerical_note, "notes")
        self._filter(lambda p: next((f"lacks {n.name}" for n in found if n not in p.numerical_notes), None))

    def deselect_numeric_notes(self, notes: Sequence[Any]) -> None:
        """Exclude plans with one of these notes."""
        found = _listed(notes, numerical_note, "notes")
        self._filter(lambda p: next((f"has {n.name}" for n in found if n in p.numerical_notes), None))

    def select_behavior_notes(self, notes: Sequence[Any]) -> None:
        """Keep the plans that have all of these notes."""
        found = _listed(notes, behavior_note, "notes")
        self._filter(lambda p: next((f"lacks {n.name}" for n in found if n not in p.behavior_notes), None))

    def deselect_behavior_notes(self, notes: Sequence[Any]) -> None:
        """Exclude plans with one of these notes."""
        found = _listed(notes, behavior_note, "notes")
        self._filter(lambda p: next((f"has {n.name}" for n in found if n in p.behavior_notes), None))

    def get_behavior_notes(self) -> list[Any]:
        """The behaviour notes of the selected plan."""
        return self.get_behavior_notes_for_plan_at_index(self.index)

    def get_behavior_notes_for_plan_at_index(self, index: int) -> list[Any]:
        """The behaviour notes of a plan."""
        return sorted(self.plan(index).behavior_notes, key=lambda note: note.name)

    def autotune(
        self, variant_pack: Mapping[Any, Any], workspace: Any = None, handle: Handle | None = None, repeat: int = 10
    ) -> list[float]:
        """Run all built plans with these tensors, and select the fastest; returns the seconds of each, in order.

        A plan that is not built, or needs more than the given workspace, has time `inf`.
        """
        self.need(Step.BUILT, "autotune()")
        seconds: list[float] = []
        for i, plan in enumerate(self.plans):
            if self.scalar_key not in plan.compiled or self._barred(plan) is not None:
                seconds.append(float("inf"))
                continue
            runner = self.runner_of(plan)
            try:
                runner.execute(variant_pack, workspace, self.stream(handle))
            except InputError:
                if i == self.index:
                    raise
                seconds.append(float("inf"))
                continue
            runner.synchronize(self.stream(handle))
            start = time.perf_counter()
            for _ in range(repeat):
                runner.execute(variant_pack, workspace, self.stream(handle))
            runner.synchronize(self.stream(handle))
            seconds.append((time.perf_counter() - start) / repeat)
        self._select(min(range(len(seconds)), key=seconds.__getitem__))
        return seconds

    def _filter(self, reason: Callable[[Plan], str | None]) -> None:
        self._filters.append(reason)


def _listed(values: object, kind: type[T], what: str) -> list[T]:
    """A list of values of one type; `InputError` for anything else."""
    found = list(cast("Sequence[Any]", values)) if isinstance(values, list | tuple | set) else None
    if found is None or not all(isinstance(v, kind) for v in found):
        name = "text" if kind is str else f"cudnn.{kind.__name__}"
        raise InputError(f"{what} are {values!r}, expected a list of {name}")
    return found
