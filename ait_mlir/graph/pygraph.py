"""`pygraph`: a graph of operations, its plans, and its execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ait_mlir import arguments
from ait_mlir.delegation import Delegation
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import InputError
from ait_mlir.graph import cuda_graphs, enums, programs, serialization, validation
from ait_mlir.graph.building import GraphBuilder, methods
from ait_mlir.graph.compilation import Compilation, Step
from ait_mlir.graph.errors import GraphArgumentError, StepError
from ait_mlir.graph.execution import Runner
from ait_mlir.graph.handle import Handle, checked
from ait_mlir.graph.lowering import rename, slots_of
from ait_mlir.graph.numbers import numbers_of
from ait_mlir.graph.plans import Plan
from ait_mlir.graph.tensor import flag, tensor
from ait_mlir.options import CompileOptions

_delegation = Delegation["pygraph"]()
_of, _chained = _delegation.method, _delegation.chained


def _compilation(graph: pygraph) -> Compilation:
    return graph.compilation


class pygraph(GraphBuilder):
    """A graph of operations in the manner of cuDNN's.

    A method for each operation adds a node and returns its outputs. `build` makes the plans and compiles the first;
    `execute` runs it with the tensors of a variant pack, in the caller's workspace, on the handle's stream.
    """

    @arguments.checked(GraphArgumentError)
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
        super().__init__(
            name, io_data_type, intermediate_data_type, compute_data_type, handle, kernel_cache, device_property
        )
        self.retention = enums.cuda_graph_retention.NONE if cuda_graph_retention is None else cuda_graph_retention
        self.compilation = Compilation(self, bool(is_dynamic_shape_enabled or is_override_shape_enabled))
        """The steps to compiled plans, and the plans."""

    def _changed(self) -> None:
        self.compilation.step = Step.OPEN

    # ** steps and plans **

    validate = _of(_compilation, Compilation.validate)
    build_operation_graph = _of(_compilation, Compilation.build_operation_graph)
    create_execution_plans = _of(_compilation, Compilation.create_execution_plans)
    check_support = _of(_compilation, Compilation.check_support)
    build_plans = _of(_compilation, Compilation.build_plans)
    build = _of(_compilation, Compilation.build)
    get_execution_plan_count = _of(_compilation, Compilation.get_execution_plan_count)
    get_plan_name_at_index = _of(_compilation, Compilation.get_plan_name_at_index)
    get_plan_name = _of(_compilation, Compilation.get_plan_name)
    build_plan_at_index = _chained(_compilation, Compilation.build_plan_at_index)
    select_plan = build_plan_at_index
    get_engine_and_knobs_at_index = _of(_compilation, Compilation.get_engine_and_knobs_at_index)
    get_engine_count = _of(_compilation, Compilation.get_engine_count)
    get_knobs_for_engine = _of(_compilation, Compilation.get_knobs_for_engine)
    create_execution_plan = _chained(_compilation, Compilation.create_execution_plan)
    get_workspace_size = _of(_compilation, Compilation.get_workspace_size)
    get_workspace_size_plan_at_index = _of(_compilation, Compilation.get_workspace_size_plan_at_index)
    deselect_workspace_greater_than = _chained(_compilation, Compilation.deselect_workspace_greater_than)
    deselect_engines = _chained(_compilation, Compilation.deselect_engines)
    select_numeric_notes = _chained(_compilation, Compilation.select_numeric_notes)
    deselect_numeric_notes = _chained(_compilation, Compilation.deselect_numeric_notes)
    select_behavior_notes = _chained(_compilation, Compilation.select_behavior_notes)
    deselect_behavior_notes = _chained(_compilation, Compilation.deselect_behavior_notes)
    get_behavior_notes = _of(_compilation, Compilation.get_behavior_notes)
    get_behavior_notes_for_plan_at_index = _of(_compilation, Compilation.get_behavior_notes_for_plan_at_index)
    autotune = _of(_compilation, Compilation.autotune)

    @property
    def plans(self) -> list[Plan]:
        """The plans, in order."""
        return list(self.compilation.plans)

    @property
    def runner(self) -> Runner:
        """The runner of the selected plan."""
        return self.compilation.runner

    # ** running **

    def execute(
        self,
        tensor_dict: Mapping[Any, Any] | Sequence[Any],
        workspace: Any = None,
        handle: Handle | None = None,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
        tensor_uids: Sequence[int] | None = None,
    ) -> None:
        """Run the selected plan on the handle's stream. The call does not wait.

        It allocates memory only where overridden shapes need a larger workspace than the declared ones, for which the
        given torch tensor is large enough; the larger workspace is kept with the graph.

        `tensor_dict`, the variant pack, maps tensors, UIDs or names to torch, NumPy or DLPack tensors, or to addresses.
        With `tensor_uids` it may be a list of tensors in the order of these UIDs. Raises `InputError` before anything
        is launched. Keep the tensors alive until the stream is done.
        """
        self.compilation.need(Step.BUILT, "execute()")
        pack: Any = tensor_dict if tensor_uids is None else _by_uids(tensor_dict, tensor_uids)
        if self.compilation.loaded is not None and isinstance(pack, Mapping):
            pack = {k.uid if isinstance(k, tensor) else k: v for k, v in cast("Mapping[Any, Any]", pack).items()}
        if override_uids is not None:
            other = self.compilation.overridden(override_uids, override_shapes, override_strides)
            space = other.workspace_for(workspace, self.compilation.get_workspace_size())
            other.runner.execute(self._by_uid(pack), space, self.compilation.stream(handle))
            return
        self.runner.execute(pack, workspace, self.compilation.stream(handle))

    def execute_plan_at_index(
        self,
        tensor_dict: Mapping[Any, Any] | Sequence[Any],
        workspace: Any = None,
        index: int = 0,
        handle: Handle | None = None,
        *,
        tensor_uids: Sequence[int] | None = None,
    ) -> None:
        """Run one plan, which must be built."""
        plan = self.compilation.plan(index)
        if self.compilation.scalar_key not in plan.compiled:
            raise StepError(f"plan {index} ({plan.name}) is not built: call build_plan_at_index({index})")
        pack: Any = tensor_dict if tensor_uids is None else _by_uids(tensor_dict, tensor_uids)
        self.compilation.runner_of(plan).execute(pack, workspace, self.compilation.stream(handle))

    def populate_cuda_graph(
        self, handle: Handle, variant_pack: Mapping[Any, Any], workspace: Any, cuda_graph: int
    ) -> None:
        """Add the launches of the selected plan to an empty `cudaGraph_t`."""
        self.compilation.need(Step.BUILT, "populate_cuda_graph()")
        cuda_graphs.populate(self.runner, variant_pack, workspace, cuda_graph)

    def update_cuda_graph(
        self, handle: Handle, variant_pack: Mapping[Any, Any], workspace: Any, cuda_graph: int
    ) -> None:
        """Replace the tensors of a `cudaGraph_t` that this graph populated."""
        self.compilation.need(Step.BUILT, "update_cuda_graph()")
        cuda_graphs.update(self.runner, variant_pack, workspace, cuda_graph)

    def get_cuda_graph_retention(self) -> Any:
        """The retention option with which the graph was made. It has no effect: recorded graphs hold our kernels."""
        return self.retention

    # ** dynamic shapes **

    def set_dynamic_shape_enabled(self, enabled: bool = True) -> pygraph:
        """Whether `execute` may be given other shapes."""
        self.compilation.may_override = flag(enabled, f"set_dynamic_shape_enabled() of {self.origin}")
        return self

    set_override_shape_enabled = set_dynamic_shape_enabled

    def _by_uid(self, pack: Mapping[Any, Any]) -> dict[int, Any]:
        """A variant pack with UIDs as keys."""
        keys = self.compilation.binding.keys
        uids = [place.uid for place in self.compilation.binding.places]
        return {uids[keys[key]] if key in keys else key: value for key, value in pack.items()}

    # ** text and bytes **

    def ir(self, phase: str = "imported") -> str:
        """The graph as IR, at the end of a phase: imported, canonical, simplified, fused, selected, ... planned."""
        if self.compilation.loaded is not None:
            return self.compilation.loaded.planned
        if self.compilation.program is None:
            self.ordered = validation.check(self.nodes, self.io_data_type, self.intermediate_data_type)
            planner = programs.exact(self, self.code_scalars())[0].planner
        else:
            planner = self.compilation.program.planner
        start, module = "imported", planner.module.clone()
        if phase in ("selected", "bufferized", "planned") and self.compilation.plans:
            plan = self.compilation.plans[self.compilation.index]
            start, module = "fused", plan.planner.pinned(plan)
        rename(module, *slots_of(*self.sides()))
        target = planner.target
        return str(run_to_phase(module, phase, CompileOptions(target.kind, target.arch, start=start)))

    def serialize(self, *, as_bytes: bool = False, include_kernels: bool = True) -> list[int] | bytes:
        """The graph with its selected plan, compiled: a list of integers below 256, or bytes. It always includes the
        kernels."""
        if self.compilation.loaded is not None:
            data = self.compilation.loaded.data
        else:
            self.compilation.need(Step.BUILT, "serialize()")
            plan, numbers = self.compilation.plans[self.compilation.index], self.compilation.last_numbers
            fitted = self.compilation.fitted(plan, numbers)
            artifact = plan.file if plan.file is not None else fitted.planner.artifact(fitted)
            arguments = numbers_of(self, dict(zip(self.code_scalars(), numbers, strict=True))).arguments
            first = len(fitted.dims) - len(self.compilation.most_rows) - len(arguments)
            places = [first + list(arguments).index(t) if t in arguments else -1 for t in self.code_scalars()]
            data = serialization.write(
                artifact, self.compilation.binding, (numbers, places), plan.name, fitted.target, fitted.dims
            )
        return data if as_bytes else list(data)

    def deserialize(self, *args: Any, handle_: Handle | None = None, pyobj: Any = None) -> None:
        """Load a serialized graph, as (data) or (handle, data), or by the keywords; nothing is compiled.

        Raises `ArtifactError` for damaged data, or data for another device.
        """
        if self.nodes or self.compilation.step is not Step.OPEN:
            raise StepError(f"graph '{self.name}' is not empty: deserialize into a new pygraph()")
        args = (*args, handle_, pyobj)
        for handle in (a for a in args if isinstance(a, Handle)):
            self.handle = checked(handle)
        data = [a for a in args if not isinstance(a, Handle) and a is not None]
        if len(data) != 1:
            raise InputError("deserialize() takes the data, with or without a handle before it")
        self.compilation.run_with(serialization.read(data[0], self.handle))

    def key(self) -> int:
        """A number that equal graphs share."""
        return hash(self.ir())

    def __repr__(self) -> str:
        return f"<pygraph '{self.name}': {len(self.nodes)} nodes, {len(self.compilation.plans)} plans>"

    def print(self) -> str:
        """The nodes with their tensors, one a line."""
        return "\n".join(
            f"{node.label}: {', '.join(map(repr, node.reads()))} -> {', '.join(map(repr, node.outputs.values()))}"
            for node in self.nodes
        )


def _by_uids(tensors: Any, uids: Sequence[int]) -> Mapping[Any, Any]:
    """A variant pack from tensors in the order of these UIDs."""
    if isinstance(tensors, Mapping):
        return cast("Mapping[Any, Any]", tensors)
    if len(uids) != len(tensors):
        raise InputError(f"{len(uids)} tensor_uids for {len(tensors)} tensors: expected as many")
    return dict(zip(uids, tensors, strict=True))


for _name, _method in methods():
    setattr(pygraph, _name, _method)
