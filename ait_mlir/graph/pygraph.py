"""`pygraph`: a graph of operations, its plans, and its execution."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError, InputError
from ait_mlir.graph import serialization, validation
from ait_mlir.graph.binding import Binding, Place
from ait_mlir.graph.building import GraphBuilder, methods
from ait_mlir.graph.enums import build_plan_policy, heur_mode
from ait_mlir.graph.errors import StepError, cudnnGraphNotSupportedError
from ait_mlir.graph.execution import Runner
from ait_mlir.graph.handle import Handle, checked, default_device, device_name, ordinal_of
from ait_mlir.graph.lowering import Lowered, lower
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.plans import Compiled, Plan, Planner
from ait_mlir.graph.tensor import tensor


class _Step(IntEnum):
    """How far a graph is; each step needs the one before it."""

    OPEN = 0
    VALIDATED = 1
    LOWERED = 2
    PLANNED = 3
    BUILT = 4


_CALLS = {
    _Step.VALIDATED: "validate()",
    _Step.LOWERED: "build_operation_graph()",
    _Step.PLANNED: "create_execution_plans()",
    _Step.BUILT: "build_plans()",
}


class pygraph(GraphBuilder):
    """A graph of operations in the manner of cuDNN's.

    A method for each operation adds a node and returns its outputs. `build` makes the plans and compiles the first
    one; `execute` runs it with the tensors of a variant pack, in a workspace of the caller, on the handle's stream.
    """

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
        super().__init__(name, io_data_type, intermediate_data_type, compute_data_type)
        self.handle = None if handle is None else checked(handle)
        self.kernel_cache = kernel_cache
        self.may_override = bool(is_dynamic_shape_enabled or is_override_shape_enabled)
        self._step = _Step.OPEN
        self._ordered: list[Node] = []
        self._lowered: Lowered | None = None
        self._planner: Planner | None = None
        self._plans: list[Plan] = []
        self._index = 0
        self._filters: list[Callable[[Plan], str | None]] = []
        self._runner: Runner | None = None
        self._shapes: dict[object, pygraph] = {}
        self._deserialized: serialization.Loaded | None = None

    # ** steps **

    def validate(self) -> None:
        """Infer dims, strides and data types, and check the graph.

        Raises `GraphError` for what is wrong, and `cudnnGraphNotSupportedError` for what has no kernel, with the node
        and the tensor.
        """
        if self._step > _Step.VALIDATED:
            raise StepError(f"graph '{self.name}': validate() after build_operation_graph()")
        self._ordered = validation.check(self.nodes, self.io_data_type, self.intermediate_data_type)
        for t in self.tensors:
            self.uid_of(t)
        self._step = _Step.VALIDATED

    def build_operation_graph(self) -> None:
        """Write the graph as `ait` ops. The graph cannot be changed afterwards."""
        self._need(_Step.VALIDATED, "build_operation_graph()", exactly=True)
        self._lowered = self._lower(self.code_scalars())
        self.is_open = False
        self._step = _Step.LOWERED

    def create_execution_plans(self, heuristics: Sequence[heur_mode] | heur_mode | None = None) -> None:
        """Make the plans of these heuristics, in order: A (estimates), B (measured), FALLBACK (our plain kernels)."""
        self._need(_Step.LOWERED, "create_execution_plans()")
        modes = [heuristics] if isinstance(heuristics, heur_mode) else list(heuristics or [heur_mode.A])
        for mode in modes:
            if not isinstance(mode, heur_mode):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise cudnnGraphNotSupportedError(f"{mode!r} is no heuristic, expected one of cudnn.heur_mode")
        self._planner = self._new_planner()
        known = {plan.key for plan in self._plans}
        self._plans += [p for p in self._planner.plans(modes) if p.key not in known]
        self._step = max(self._step, _Step.PLANNED)

    def check_support(self, *_: Any) -> None:
        """Raise `cudnnGraphNotSupportedError` unless there is a plan that is not deselected."""
        self._need(_Step.PLANNED, "check_support()")
        if not self._allowed():
            reasons = "; ".join(f"{p.name}: {self._barred(p)}" for p in self._plans)
            raise cudnnGraphNotSupportedError(f"graph '{self.name}' has no plan left: {reasons}")

    def build_plans(self, *args: Any) -> None:
        """Compile the first plan that can be built, or all with `build_plan_policy.ALL`."""
        self._need(_Step.PLANNED, "build_plans()")
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
            told = "; ".join(f"{p.name}: {p.error or self._barred(p)}" for p in self._plans)
            raise cudnnGraphNotSupportedError(f"graph '{self.name}': no plan could be built: {told}")
        self._select(built[0])

    def build(self, heuristics: Sequence[heur_mode] | heur_mode | None = None) -> None:
        """All steps: validate, lower, plan, check and build."""
        self.validate()
        self.build_operation_graph()
        self.create_execution_plans(heuristics)
        self.check_support()
        self.build_plans()

    # ** plans **

    def get_execution_plan_count(self) -> int:
        """The number of plans; 0 before create_execution_plans."""
        return len(self._plans)

    def get_plan_name_at_index(self, index: int) -> str:
        """The name of a plan: heuristic, heaviest op and its kernel."""
        return self._plan(index).name

    def get_plan_name(self) -> str:
        """The name of the selected plan."""
        self._need(_Step.PLANNED, "get_plan_name()")
        return self._plans[self._index].name

    def build_plan_at_index(self, index: int) -> pygraph:
        """Compile one plan, and select it."""
        plan = self._plan(index)
        if (reason := self._barred(plan)) is not None:
            raise cudnnGraphNotSupportedError(f"plan {index} ({plan.name}) is deselected: {reason}")
        self._compiled(plan)
        self._select(index)
        return self

    def select_plan(self, index: int) -> pygraph:
        """Let `execute` run this plan; it is compiled if it was not."""
        return self.build_plan_at_index(index)

    def get_workspace_size(self, handle: Handle | None = None, **overrides: Any) -> int:
        """The bytes of workspace that `execute` needs with the selected plan."""
        self._need(_Step.BUILT, "get_workspace_size()")
        target = self._overridden(**overrides) if overrides else self
        return target.runner.workspace

    def get_workspace_size_plan_at_index(self, index: int, handle: Handle | None = None) -> int:
        """The bytes of workspace that a plan needs; it must be built."""
        plan = self._plan(index)
        compiled = plan.compiled.get(self._scalar_key)
        if compiled is None:
            raise StepError(f"plan {index} ({plan.name}) is not built: call build_plan_at_index({index})")
        return Runner.bytes_of(compiled, self.binding)

    def deselect_workspace_greater_than(self, workspace_limit: int) -> pygraph:
        """Exclude plans that need more workspace, in bytes."""

        def reason(plan: Plan) -> str | None:
            found = [Runner.bytes_of(c, self.binding) for c in plan.compiled.values()]
            return f"needs {max(found)} bytes of workspace" if found and max(found) > workspace_limit else None

        return self._filter(reason)

    def deselect_engines(self, engine_names: Sequence[str]) -> pygraph:
        """Exclude plans whose name contains one of these."""
        return self._filter(
            lambda plan: next((f"its name contains {n!r}" for n in engine_names if n in plan.name), None)
        )

    def select_numeric_notes(self, notes: Sequence[Any]) -> pygraph:
        """Keep the plans that have all of these notes."""
        return self._filter(lambda p: next((f"lacks {n.name}" for n in notes if n not in p.numerical_notes), None))

    def deselect_numeric_notes(self, notes: Sequence[Any]) -> pygraph:
        """Exclude plans with one of these notes."""
        return self._filter(lambda p: next((f"has {n.name}" for n in notes if n in p.numerical_notes), None))

    def select_behavior_notes(self, notes: Sequence[Any]) -> pygraph:
        """Keep the plans that have all of these notes."""
        return self._filter(lambda p: next((f"lacks {n.name}" for n in notes if n not in p.behavior_notes), None))

    def deselect_behavior_notes(self, notes: Sequence[Any]) -> pygraph:
        """Exclude plans with one of these notes."""
        return self._filter(lambda p: next((f"has {n.name}" for n in notes if n in p.behavior_notes), None))

    def get_behavior_notes(self) -> list[Any]:
        """The behaviour notes of the selected plan."""
        return self.get_behavior_notes_for_plan_at_index(self._index)

    def get_behavior_notes_for_plan_at_index(self, index: int) -> list[Any]:
        """The behaviour notes of a plan."""
        return sorted(self._plan(index).behavior_notes, key=lambda note: note.name)

    def autotune(
        self, variant_pack: Mapping[Any, Any], workspace: Any = None, handle: Handle | None = None, repeat: int = 10
    ) -> list[float]:
        """Run all built plans with these tensors, and select the fastest; returns the seconds of each, in order.

        A plan that is not built, or needs more workspace than it is given, takes `inf`.
        """
        self._need(_Step.BUILT, "autotune()")
        seconds: list[float] = []
        for i, plan in enumerate(self._plans):
            if self._scalar_key not in plan.compiled or self._barred(plan) is not None:
                seconds.append(float("inf"))
                continue
            runner = self._runner_of(plan)
            try:
                runner.execute(variant_pack, workspace, self._stream(handle))
            except InputError:
                if i == self._index:
                    raise
                seconds.append(float("inf"))
                continue
            runner.synchronize(self._stream(handle))
            start = time.perf_counter()
            for _ in range(repeat):
                runner.execute(variant_pack, workspace, self._stream(handle))
            runner.synchronize(self._stream(handle))
            seconds.append((time.perf_counter() - start) / repeat)
        self._select(min(range(len(seconds)), key=seconds.__getitem__))
        return seconds

    # ** running **

    def execute(
        self,
        variant_pack: Mapping[Any, Any],
        workspace: Any = None,
        handle: Handle | None = None,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """Run the selected plan on the handle's stream. Nothing is allocated, and the call does not wait.

        `variant_pack` maps tensors, UIDs or names to torch, NumPy or DLPack tensors, or to addresses. Raises
        `InputError` before anything is launched. Keep the tensors alive until the stream is done.
        """
        if self._runner is None:
            self._need(_Step.BUILT, "execute()")
        if override_uids is not None:
            other = self._overridden(override_uids, override_shapes, override_strides)
            other.runner.execute(self._by_uid(variant_pack), workspace, self._stream(handle))
            return
        self.runner.execute(variant_pack, workspace, self._stream(handle))

    def execute_plan_at_index(
        self, variant_pack: Mapping[Any, Any], workspace: Any = None, index: int = 0, handle: Handle | None = None
    ) -> None:
        """Run one plan, which must be built."""
        plan = self._plan(index)
        if self._scalar_key not in plan.compiled:
            raise StepError(f"plan {index} ({plan.name}) is not built: call build_plan_at_index({index})")
        self._runner_of(plan).execute(variant_pack, workspace, self._stream(handle))

    @property
    def runner(self) -> Runner:
        """What runs the selected plan."""
        assert self._runner is not None, "execute() needs build_plans()"
        return self._runner

    def populate_cuda_graph(self, handle: Handle, variant_pack: Mapping[Any, Any], workspace: Any, graph: int) -> None:
        """Add the launches of the selected plan to an empty `cudaGraph_t`."""
        from ait_mlir.graph import cuda_graphs

        self._need(_Step.BUILT, "populate_cuda_graph()")
        cuda_graphs.populate(self.runner, variant_pack, workspace, graph)

    def update_cuda_graph(self, handle: Handle, variant_pack: Mapping[Any, Any], workspace: Any, graph: int) -> None:
        """Let a `cudaGraph_t` that was populated by this graph work on other tensors."""
        from ait_mlir.graph import cuda_graphs

        self._need(_Step.BUILT, "update_cuda_graph()")
        cuda_graphs.update(self.runner, variant_pack, workspace, graph)

    # ** dynamic shapes **

    def set_dynamic_shape_enabled(self, enabled: bool = True) -> pygraph:
        """Whether `execute` may be given other shapes."""
        self.may_override = enabled
        return self

    set_override_shape_enabled = set_dynamic_shape_enabled

    def _by_uid(self, pack: Mapping[Any, Any]) -> dict[int, Any]:
        """A variant pack with UIDs as keys."""
        keys = self.binding.keys
        uids = [place.uid for place in self.binding.places]
        return {uids[keys[key]] if key in keys else key: value for key, value in pack.items()}

    def _overridden(
        self,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> pygraph:
        """The same graph with other dims, built with the same heuristic."""
        if not self.may_override:
            raise StepError(f"graph '{self.name}' has fixed shapes: make it with is_override_shape_enabled=True")
        uids, shapes = list(override_uids or ()), list(override_shapes or ())
        strides = list(override_strides or ([()] * len(uids)))
        if not len(uids) == len(shapes) == len(strides):
            raise InputError(
                f"{len(uids)} override_uids, {len(shapes)} override_shapes, {len(strides)} override_strides: expected "
                "as many of each"
            )
        key = tuple((u, tuple(d), tuple(s)) for u, d, s in zip(uids, shapes, strides, strict=True))
        if key not in self._shapes:
            from ait_mlir.graph.copying import copy_with

            other = copy_with(self, {u: (tuple(d), tuple(s)) for u, d, s in key})
            other.build([self._plans[self._index].mode])
            self._shapes[key] = other
        return self._shapes[key]

    # ** text and bytes **

    def ir(self, phase: str = "imported") -> str:
        """The graph as IR, at the end of a phase: imported, canonical, simplified, fused, selected, ... planned."""
        if self._deserialized is not None:
            return self._deserialized.planned
        if self._lowered is None:
            ordered = validation.check(self.nodes, self.io_data_type, self.intermediate_data_type)
            module = lower(self._symbol, ordered, *self._sides(), self.code_scalars()).module
        else:
            module = self._lowered.module
        planner = self._planner or Planner(module, self._kind(), 0)
        if phase in ("selected", "bufferized", "planned") and self._plans:
            start = planner.pinned(self._plans[self._index])
            return str(run_to_phase(start, phase, start="fused", target=planner.target.kind, arch=planner.target.arch))
        text = run_to_phase(module.clone(), phase, target=planner.target.kind, arch=planner.target.arch)
        return str(text)

    def serialize(self, *, as_bytes: bool = False, **_: Any) -> list[int] | bytes:
        """The graph with its selected plan, compiled: a list of integers below 256, or bytes."""
        if self._deserialized is not None:
            data = self._deserialized.data
        else:
            self._need(_Step.BUILT, "serialize()")
            assert self._planner is not None
            plan = self._plans[self._index]
            artifact = self._planner.artifact(plan)
            data = serialization.write(artifact, self.binding, self._scalar_key, plan.name, self._planner.target)
        return data if as_bytes else list(data)

    def deserialize(self, *args: Any) -> None:
        """Load a serialized graph, as (data) or (handle, data); nothing is compiled.

        Raises `ArtifactError` for damaged data, or data for another device.
        """
        if self.nodes or self._step is not _Step.OPEN:
            raise StepError(f"graph '{self.name}' is not empty: deserialize into a new pygraph()")
        for handle in (a for a in args if isinstance(a, Handle)):
            self.handle = checked(handle)
        data = [a for a in args if not isinstance(a, Handle) and a is not None]
        if len(data) != 1:
            raise InputError("deserialize() takes the data, with or without a handle before it")
        self._deserialized = loaded = serialization.read(data[0], self.handle)
        self._runner = Runner(loaded.compiled, loaded.binding, loaded.numbers, None)
        self.is_open = False
        self._step = _Step.BUILT

    def key(self) -> int:
        """A number that equal graphs share."""
        return hash(self.ir())

    def __repr__(self) -> str:
        return f"<pygraph '{self.name}': {len(self.nodes)} nodes, {len(self._plans)} plans>"

    def print(self) -> str:
        """The nodes with their tensors, one a line."""
        return "\n".join(
            f"{node.label}: {', '.join(map(repr, node.reads()))} -> {', '.join(map(repr, node.outputs.values()))}"
            for node in self.nodes
        )

    # ** inside **

    def _changed(self) -> None:
        self._step = _Step.OPEN

    def _need(self, step: _Step, call: str, exactly: bool = False) -> None:
        if self._step < step:
            raise StepError(f"graph '{self.name}': {call} needs {_CALLS[step]} first")
        if exactly and self._step > step:
            raise StepError(f"graph '{self.name}': {call} was called already")

    def _kind(self) -> Any:
        return "cpu" if self.device == "cpu" else "cuda"

    @property
    def device(self) -> str:
        """Where the graph runs: the handle's device, that of the first tensor it was made like, or the default."""
        if self.handle is not None:
            return self.handle.device
        return self.template_device or (default_device() if not self.bound else device_name(default_device()))

    @property
    def _symbol(self) -> str:
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in self.name)
        return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"

    def _sides(self) -> tuple[list[tensor], list[tensor]]:
        """The inputs in memory and the outputs."""
        code = self.code_scalars()
        return [t for t in self.inputs() if not t.is_constant and t not in code], self.outputs()

    def _lower(self, scalars: Mapping[tensor, float]) -> Lowered:
        return lower(self._symbol, self._ordered, *self._sides(), scalars)

    def _new_planner(self, lowered: Lowered | None = None) -> Planner:
        found = lowered or self._lowered
        assert found is not None
        return Planner(found.module, self._kind(), ordinal_of(self.device))

    @cached_property
    def binding(self) -> Binding:
        """What `execute` needs: the inputs and outputs of the module, then the scalars that are part of the code."""
        assert self._lowered is not None
        return make_binding(self, self._lowered)

    @property
    def _scalar_key(self) -> tuple[float, ...]:
        return tuple(self.code_scalars().values())

    def _plan(self, index: int) -> Plan:
        self._need(_Step.PLANNED, "a plan by index")
        if isinstance(index, bool) or not 0 <= index < len(self._plans):
            raise InputError(f"graph '{self.name}' has no plan {index!r}; it has plans 0 to {len(self._plans) - 1}")
        return self._plans[index]

    def _filter(self, reason: Callable[[Plan], str | None]) -> pygraph:
        self._filters.append(reason)
        return self

    def _barred(self, plan: Plan) -> str | None:
        return next((reason for f in self._filters if (reason := f(plan)) is not None), None)

    def _allowed(self) -> list[int]:
        return [i for i, plan in enumerate(self._plans) if self._barred(plan) is None]

    def _compiled(self, plan: Plan, scalars: tuple[float, ...] | None = None) -> Compiled:
        """The library of a plan, specialised for the numbers of the scalars that are part of the code."""
        key = self._scalar_key if scalars is None else scalars
        if key not in plan.compiled:
            planner = self._planner
            if key != self._scalar_key:
                numbers = dict(zip(self.code_scalars(), key, strict=True))
                planner = self._new_planner(self._lower(numbers))
            assert planner is not None
            plan.compiled[key] = planner.compiled(plan)
        return plan.compiled[key]

    def _runner_of(self, plan: Plan) -> Runner:
        return Runner(
            self._compiled(plan), self.binding, self._scalar_key, lambda numbers: self._compiled(plan, numbers)
        )

    def _select(self, index: int) -> None:
        self._index = index
        self._runner = self._runner_of(self._plans[index])
        self._step = _Step.BUILT

    def _stream(self, handle: Handle | None) -> int:
        chosen = handle if handle is not None else self.handle
        if chosen is None:
            return 0
        if chosen.is_destroyed or not isinstance(chosen, Handle):  # pyright: ignore[reportUnnecessaryIsInstance]
            checked(chosen)
        if chosen.device != self.runner.binding.device:
            raise InputError(
                f"the handle is of {chosen.device}, but graph '{self.name}' runs on {self.runner.binding.device}"
            )
        return chosen.stream


def make_binding(graph: pygraph, lowered: Lowered) -> Binding:
    """The places of a graph, with all the keys that name each."""
    own = [s.tensor for s in lowered.inputs if not s.is_donated]
    outs = [s.tensor for s in lowered.outputs]
    tensors = [*own, *outs, *graph.code_scalars()]
    outputs = set(outs)
    places = [
        Place(
            t.label,
            t.name,
            graph.uid_of(t),
            t.dtype,
            t.dims or (),
            t.strides or (),
            t in outputs,
            t.is_by_value,
            t.value,
        )
        for t in tensors
    ]
    keys: dict[Any, int] = {}
    for i, t in enumerate(tensors):
        keys[t] = keys[graph.uid_of(t)] = i
    names = [t.name for t in tensors]
    keys.update({n: i for i, n in enumerate(names) if names.count(n) == 1})
    also: dict[Any, str] = {}
    for t in graph.tensors:
        if t not in keys:
            reason = "is virtual: it has no memory; call set_output(True)" if t.producer else "is read by no node"
            for key in (t, t.uid, t.name):
                if key not in keys:
                    also[key] = f"{t.label} {reason}"
    binding = Binding(graph.name, places, graph.device, keys, also)
    binding.inputs = len(own)
    binding.results = len(outs)
    binding.donated = [outs.index(s.tensor) for s in lowered.inputs if s.is_donated]
    binding.bound = {i: graph.bound[t] for i, t in enumerate(tensors) if t in graph.bound}
    return binding


for _name, _method in methods():
    setattr(pygraph, _name, _method)
