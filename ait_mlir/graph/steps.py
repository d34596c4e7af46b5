"""The steps from a graph of nodes to a compiled plan: validate, lower, plan, check, build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, Self

from ait_mlir.errors import AitError, InputError
from ait_mlir.graph import enums, programs, validation
from ait_mlir.graph.binding import Binding
from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.copying import copy_with
from ait_mlir.graph.enums import build_plan_policy, heur_mode
from ait_mlir.graph.errors import StepError, cudnnGraphNotSupportedError
from ait_mlir.graph.execution import Runner
from ait_mlir.graph.handle import Handle, checked
from ait_mlir.graph.places import make_binding
from ait_mlir.graph.plans import Plan, Sized
from ait_mlir.graph.programs import Program
from ait_mlir.graph.ragged import most_rows
from ait_mlir.graph.structure import Structure, structure_of
from ait_mlir.graph.tensor import whole_numbers

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


class GraphSteps(GraphBuilder):
    """A graph with the steps from nodes to a compiled plan; each step requires the previous step."""

    def __init__(
        self,
        name: str = "graph",
        io_data_type: Any = None,
        intermediate_data_type: Any = None,
        compute_data_type: Any = None,
        handle: Handle | None = None,
        sm_count: int | None = None,
        sm_version: int | None = None,
        kernel_cache: Any = None,
        device_property: Any = None,
        is_dynamic_shape_enabled: bool = False,
        is_override_shape_enabled: bool = False,
        cuda_graph_retention: Any = None,
        *,
        is_cuda_graph_replay_expected: bool = False,
    ) -> None:
        super().__init__(name, io_data_type, intermediate_data_type, compute_data_type, handle, kernel_cache)
        self.retention = enums.cuda_graph_retention.NONE if cuda_graph_retention is None else cuda_graph_retention
        self.may_override = bool(is_dynamic_shape_enabled or is_override_shape_enabled)
        self._step = Step.OPEN
        self._structure: Structure | None = None
        self._program: Program | None = None
        """The program that the plans run; `_dims` are its dims for this graph."""
        self._dims: tuple[int, ...] = ()
        self._plans: list[Plan] = []
        self._index = 0
        self._filters: list[Callable[[Plan], str | None]] = []
        self._runner: Runner | None = None
        self._shapes: dict[object, Any] = {}
        """Copies of the graph with other dims."""
        self._deserialized: Any = None
        """The loaded graph, if this graph was deserialized."""

    # ** steps **

    def validate(self) -> None:
        """Infer dims, strides and data types, and check the graph.

        Raises `GraphError` for an invalid graph, and `cudnnGraphNotSupportedError` for a missing kernel, with the node
        and the tensor.
        """
        if self._step > Step.VALIDATED:
            raise StepError(f"graph '{self.name}': validate() after build_operation_graph()")
        self.ordered = validation.check(self.nodes, self.io_data_type, self.intermediate_data_type)
        for t in self.tensors:
            self.uid_of(t)
        self._step = Step.VALIDATED

    def build_operation_graph(self) -> None:
        """Write the graph as `ait` ops, unless a program of its structure exists. Later changes of the graph raise."""
        self._need(Step.VALIDATED, "build_operation_graph()", exactly=True)
        self._structure = structure_of(self)
        self._program, dims = programs.find(self, self._structure, self.code_scalars())
        self._dims = (*dims, *self._most_rows)
        self.is_open = False
        self._step = Step.LOWERED

    def create_execution_plans(self, heuristics: Sequence[heur_mode] | heur_mode | None = None) -> None:
        """Make the plans of these heuristics, in order: A (estimates), B (measured), FALLBACK (our plain kernels)."""
        self._need(Step.LOWERED, "create_execution_plans()")
        modes = [heuristics] if isinstance(heuristics, heur_mode) else list(heuristics or [heur_mode.A])
        for mode in modes:
            if not isinstance(mode, heur_mode):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise cudnnGraphNotSupportedError(f"{mode!r} is no heuristic, expected one of cudnn.heur_mode")
        for mode in modes:
            known = {plan.key for plan in self._plans}
            program, dims = self._program_of(mode)
            self._plans += [p for p in program.planner.plans(mode, dims) if p.key not in known]
        self._step = max(self._step, Step.PLANNED)

    def check_support(self, *_: Any) -> None:
        """Raise `cudnnGraphNotSupportedError` if all plans are deselected."""
        self._need(Step.PLANNED, "check_support()")
        if not self._allowed():
            reasons = "; ".join(f"{p.name}: {self._barred(p)}" for p in self._plans)
            raise cudnnGraphNotSupportedError(f"graph '{self.name}' has no plan left: {reasons}")

    def build_plans(self, *args: Any) -> None:
        """Compile the first plan that can be built, or all with `build_plan_policy.ALL`."""
        self._need(Step.PLANNED, "build_plans()")
        self.check_support()
        policy = next((a for a in args if isinstance(a, build_plan_policy)), build_plan_policy.HEURISTICS_CHOICE)
        built: list[int] = []
        for i in self._allowed():
            try:
                self._compiled(self._plans[i])
            except AitError as error:
                self._plans[i].error = error
                continue
            if self._barred(self._plans[i]) is None:
                built.append(i)
                if policy is build_plan_policy.HEURISTICS_CHOICE:
                    break
        if not built:
            reasons = "; ".join(f"{p.name}: {p.error or self._barred(p)}" for p in self._plans)
            raise cudnnGraphNotSupportedError(f"graph '{self.name}': no plan could be built: {reasons}")
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
        assert self._runner is not None, "execute() needs build_plans()"
        return self._runner

    def overridden(
        self,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> Self:
        """The same graph with other dims, built with the same heuristic."""
        if not self.may_override:
            raise StepError(f"graph '{self.name}' has fixed shapes: make it with is_override_shape_enabled=True")
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
            other = copy_with(self, {u: (d, s) for u, d, s in key})
            other.build([self._plans[self._index].mode])
            self._shapes[key] = other
        return self._shapes[key]

    # ** inside **

    def _changed(self) -> None:
        self._step = Step.OPEN

    def _need(self, step: Step, call: str, exactly: bool = False) -> None:
        if self._step < step:
            raise StepError(f"graph '{self.name}': {call} needs {_CALLS[step]} first")
        if exactly and self._step > step:
            raise StepError(f"graph '{self.name}': {call} was called already")

    def _program_of(self, mode: heur_mode) -> tuple[Program, tuple[int, ...]]:
        """The program and its dims for a heuristic; B times kernels for exactly the sizes of this graph."""
        assert self._program is not None
        if mode is heur_mode.B and self._program.is_general:
            program, dims = programs.exact(self, self.code_scalars())
            return program, (*dims, *self._most_rows)
        return self._program, self._dims

    @property
    def _most_rows(self) -> tuple[int, ...]:
        """The dims of the ragged tensors, two for each, with all sequences at full length."""
        ragged = [t for side in self.sides() for t in side if t.ragged_offset is not None]
        return tuple(most_rows(t) for t in ragged for _ in range(2))

    @cached_property
    def binding(self) -> Binding:
        """The binding for `execute`: inputs and outputs of the module, then the scalars that are part of the code."""
        return make_binding(self)

    @property
    def _scalar_key(self) -> tuple[float, ...]:
        return tuple(self.code_scalars().values())

    def _plan(self, index: int) -> Plan:
        self._need(Step.PLANNED, "a plan by index")
        is_number = isinstance(index, int) and not isinstance(index, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_number or not 0 <= index < len(self._plans):
            raise InputError(f"graph '{self.name}' has no plan {index!r}; it has plans 0 to {len(self._plans) - 1}")
        return self._plans[index]

    def _barred(self, plan: Plan) -> str | None:
        return next((reason for f in self._filters if (reason := f(plan)) is not None), None)

    def _allowed(self) -> list[int]:
        return [i for i, plan in enumerate(self._plans) if self._barred(plan) is None]

    def _compiled(self, plan: Plan, scalars: tuple[float, ...] | None = None) -> Sized:
        """The library of a plan for these numbers of the scalars that are part of the code; compiled now, unless
        existing code takes them as arguments."""
        own = self._scalar_key
        key = own if scalars is None else scalars
        if key not in plan.compiled:
            if len(plan.compiled) >= NUMBERS_KEPT:
                plan.compiled = {k: v for k, v in plan.compiled.items() if k == own}
            fitted = self._fitted(plan, key)
            plan.compiled[key] = fitted.planner.compiled(fitted).at(fitted.dims)
        return plan.compiled[key]

    def _fitted(self, plan: Plan, numbers: tuple[float, ...]) -> Plan:
        """The plan for the module with these numbers of the scalars that are part of the code."""
        if numbers == self._scalar_key:
            return plan
        scalars = dict(zip(self.code_scalars(), numbers, strict=True))
        is_exact = plan.mode is heur_mode.B
        program, dims = programs.exact(self, scalars) if is_exact else programs.find(self, self._structure, scalars)
        return program.planner.fitted(plan, (*dims, *self._most_rows))

    def _runner_of(self, plan: Plan) -> Runner:
        return Runner(
            self._compiled(plan), self.binding, self._scalar_key, lambda numbers: self._compiled(plan, numbers)
        )

    def _select(self, index: int) -> None:
        self._index = index
        self._runner = self._runner_of(self._plans[index])
        self._step = Step.BUILT

    def _stream(self, handle: Handle | None) -> int:
        chosen = handle if handle is not None else self.handle
        if chosen is None:
            return 0
        if not isinstance(chosen, Handle) or chosen.is_destroyed:  # pyright: ignore[reportUnnecessaryIsInstance]
            checked(chosen)
        if chosen.device != self.runner.binding.device:
            raise InputError(
                f"the handle is of {chosen.device}, but graph '{self.name}' runs on {self.runner.binding.device}"
            )
        return chosen.stream
