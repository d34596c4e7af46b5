"""The plans of a graph: their names and notes, filters that exclude plans, and the selection of one plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

from ait_mlir.errors import InputError
from ait_mlir.graph.enums import behavior_note, heur_mode, numerical_note
from ait_mlir.graph.errors import StepError, cudnnGraphNotSupportedError
from ait_mlir.graph.execution import Runner
from ait_mlir.graph.handle import Handle
from ait_mlir.graph.plans import Plan
from ait_mlir.graph.steps import GraphSteps, Step

T = TypeVar("T")


class GraphPlans(GraphSteps):
    """A graph whose plans a caller lists, excludes, selects and times."""

    def get_execution_plan_count(self) -> int:
        """The number of plans; 0 before create_execution_plans."""
        return len(self._plans)

    def get_plan_name_at_index(self, index: int) -> str:
        """The name of a plan: heuristic, heaviest op and its kernel."""
        return self._plan(index).name

    def get_plan_name(self) -> str:
        """The name of the selected plan."""
        self._need(Step.PLANNED, "get_plan_name()")
        return self._plans[self._index].name

    def build_plan_at_index(self, index: int) -> Self:
        """Compile one plan, and select it."""
        plan = self._plan(index)
        if (reason := self._barred(plan)) is not None:
            raise cudnnGraphNotSupportedError(f"plan {index} ({plan.name}) is deselected: {reason}")
        self._compiled(plan)
        self._select(index)
        return self

    def select_plan(self, index: int) -> Self:
        """Let `execute` run this plan; compiles it if necessary."""
        return self.build_plan_at_index(index)

    @property
    def plans(self) -> list[Plan]:
        """The plans, in order."""
        return list(self._plans)

    def get_engine_and_knobs_at_index(self, index: int) -> tuple[str, dict[str, int]]:
        """The provider and the configuration of the heaviest op's kernel, as arguments of `create_execution_plan`."""
        plan = self._plan(index)
        candidate = plan.candidates.get(plan.heaviest)
        if candidate is None or len(candidate.kernels) != 1:
            raise cudnnGraphNotSupportedError(f"plan {index} ({plan.name}) is not described by one kernel")
        provider, config = candidate.kernels[0]
        return provider, dict(config)

    def create_execution_plan(self, engine_id: str, knobs: Mapping[str, int] | None = None) -> Self:
        """Append the plan with this kernel for the heaviest op, from `get_engine_and_knobs_at_index`."""
        self._need(Step.LOWERED, "create_execution_plan()")
        if not isinstance(knobs or {}, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"knobs are {knobs!r}, expected a dict from get_engine_and_knobs_at_index()")
        program, dims = self._program_of(heur_mode.A)
        plan = program.planner.plan_with(engine_id, knobs or {}, dims)
        if plan is None:
            raise cudnnGraphNotSupportedError(
                f"graph '{self.name}' has no kernel {engine_id!r} with {dict(knobs or {})}"
            )
        if all(plan.key != known.key for known in self._plans):
            self._plans.append(plan)
        self._step = max(self._step, Step.PLANNED)
        return self

    def get_workspace_size(
        self,
        handle: Handle | None = None,
        override_uids: Sequence[int] | None = None,
        override_shapes: Sequence[Sequence[int]] | None = None,
        override_strides: Sequence[Sequence[int]] | None = None,
    ) -> int:
        """The bytes of workspace that `execute` needs with the selected plan, for these shapes."""
        self._need(Step.BUILT, "get_workspace_size()")
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
        plan = self._plan(index)
        if override_uids is not None or override_shapes is not None:
            if index != self._index:
                raise cudnnGraphNotSupportedError(
                    f"plan {index} is not selected: only plan {self._index} is for other shapes"
                )
            return self.overridden(override_uids, override_shapes, override_strides).runner.workspace
        compiled = plan.compiled.get(self._scalar_key)
        if compiled is None:
            raise StepError(f"plan {index} ({plan.name}) is not built: call build_plan_at_index({index})")
        return Runner.bytes_of(compiled, self.binding)

    def deselect_workspace_greater_than(self, workspace_limit: int) -> Self:
        """Exclude plans that need more workspace, in bytes."""
        if isinstance(workspace_limit, bool) or not isinstance(workspace_limit, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"the limit of the workspace is {workspace_limit!r}, expected bytes")

        def reason(plan: Plan) -> str | None:
            found = [Runner.bytes_of(c, self.binding) for c in plan.compiled.values()]
            return f"needs {max(found)} bytes of workspace" if found and max(found) > workspace_limit else None

        return self._filter(reason)

    def deselect_engines(self, engine_names: Sequence[str]) -> Self:
        """Exclude plans whose name contains one of these strings."""
        names = _listed(engine_names, str, "engine_names")
        return self._filter(lambda plan: next((f"its name contains {n!r}" for n in names if n in plan.name), None))

    def select_numeric_notes(self, notes: Sequence[Any]) -> Self:
        """Keep the plans that have all of these notes."""
        found = _listed(notes, numerical_note, "notes")
        return self._filter(lambda p: next((f"lacks {n.name}" for n in found if n not in p.numerical_notes), None))

    def deselect_numeric_notes(self, notes: Sequence[Any]) -> Self:
        """Exclude plans with one of these notes."""
        found = _listed(notes, numerical_note, "notes")
        return self._filter(lambda p: next((f"has {n.name}" for n in found if n in p.numerical_notes), None))

    def select_behavior_notes(self, notes: Sequence[Any]) -> Self:
        """Keep the plans that have all of these notes."""
        found = _listed(notes, behavior_note, "notes")
        return self._filter(lambda p: next((f"lacks {n.name}" for n in found if n not in p.behavior_notes), None))

    def deselect_behavior_notes(self, notes: Sequence[Any]) -> Self:
        """Exclude plans with one of these notes."""
        found = _listed(notes, behavior_note, "notes")
        return self._filter(lambda p: next((f"has {n.name}" for n in found if n in p.behavior_notes), None))

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

        A plan that is not built, or needs more than the given workspace, has time `inf`.
        """
        self._need(Step.BUILT, "autotune()")
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

    def _filter(self, reason: Callable[[Plan], str | None]) -> Self:
        self._filters.append(reason)
        return self


def _listed(values: object, kind: type[T], what: str) -> list[T]:
    """A list of values of one type; `InputError` for anything else."""
    found = list(cast("Sequence[Any]", values)) if isinstance(values, list | tuple | set) else None
    if found is None or not all(isinstance(v, kind) for v in found):
        name = "text" if kind is str else f"cudnn.{kind.__name__}"
        raise InputError(f"{what} are {values!r}, expected a list of {name}")
    return found
