"""Chooses the kernel of every op, and writes the choice into the IR.

A choice is a candidate: the whole op on one kernel, or the op cut into several ops with one kernel each
("library gemm, then one fused kernel"). Measured times decide (measure.py): times of this card or, without a card, the
times of the package. Without times the smallest estimate decides. An op that already has a `kernel` keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp, tensor_ops
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import KernelAttr, TensorType, scope_of
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.candidates import Candidate, candidates_of, cut_in_place
from ait_mlir.lowering.choices import Choice, Selected
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.outside import advice
from ait_mlir.lowering.module_target import make_target, set_target
from ait_mlir.lowering.points import STRATEGIES
from ait_mlir.lowering.target import DEFAULT_ARCH, KINDS
from ait_mlir.lowering.weights import is_weight
from ait_mlir.selection.budget import known_selector, selector
from ait_mlir.selection.estimated import choice_by_estimate
from ait_mlir.selection.measure import Selector, require_device, show
from ait_mlir.selection.shortlist import best_by_estimate
from ait_mlir.selection.tasks import Task, surroundings


@dataclass(frozen=True)
class Selection:
    """The kernel chosen for `count` equal ops, and the reason: `only kernel`, `time` or `estimate`."""

    op: str
    types: str
    count: int
    kernel: str
    reason: str


@dataclass
class Selections:
    """All choices of a compilation, and the lines that the selectors log about their measurements."""

    rows: list[Selection] = field(default_factory=list[Selection])
    log: list[str] = field(default_factory=list[str])


_kept: ContextVar[Selections | None] = ContextVar("_kept", default=None)


@contextmanager
def kept_selections() -> Generator[Selections]:
    """A context that records all choices of `select` made inside it."""
    found = Selections()
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)


def are_selections_kept() -> bool:
    """Whether this is inside of `kept_selections`."""
    return _kept.get() is not None


def needs_kernel(op: Operation) -> bool:
    return not isinstance(op, ParamOp | ConstantOp | OutputOp | ScanOp | YieldOp | ViewLike)


def check_pinned(op: Operation, choice: Attribute, target: Target) -> None:
    """Raise `PassError` unless the kernel in the text exists and accepts its configuration."""
    if not needs_kernel(op):
        raise PassError(f"{op.name} runs on no kernel; leave out its attribute 'kernel'", op)
    if not isinstance(choice, KernelAttr):
        raise PassError(f"the attribute 'kernel' is {choice}, expected one like #ait.kernel<\"native\", {{}}>", op)
    try:
        Selected.checked(choice.provider.data, choice.config, op, target)
    except ValueError as error:
        raise PassError(str(error), op) from None


MOST_ELEMENTS = 2**31 - 1
"""The most rows, columns or positions that kernels count in 32 bits."""


def _too_large(op: Operation) -> str | None:
    """The advice for an op that has no kernel because its tensors may be too large; None for others."""
    scope = scope_of(op)
    types = [x.type for x in (*op.operands, *op.results) if isinstance(x.type, TensorType)]
    most = max((scope.bounds(t.num_elements())[1] for t in types), default=0)
    if most <= MOST_ELEMENTS:
        return None
    return (
        f"a tensor may have {most} elements with the maxima of its dims, kernels of this op count up to "
        f"{MOST_ELEMENTS}: give the dims smaller maxima"
    )


def _elsewhere(op: Operation, target: Target) -> str | None:
    """The advice for an op that has kernels for other targets; None for others."""
    others = [kind for kind in KINDS if kind != target.kind and kernels_for(op, Target(kind, DEFAULT_ARCH[kind]))]
    return f"compile for {' or '.join(others)}, which {'has' if len(others) == 1 else 'have'} one" if others else None


def select_graph(graph: GraphOp, target: Target, by_time: Selector) -> None:
    """Make a choice for each op of the graph; equal ops with equal views share one choice."""
    keys: dict[Operation, object] = {}
    candidates: dict[object, list[Candidate]] = {}
    tasks: dict[object, Task] = {}
    known: dict[object, object] = {}
    for op in tensor_ops(graph.block):
        if (pinned := op.attributes.get("kernel")) is not None:
            check_pinned(op, pinned, target)
            continue
        if not needs_kernel(op):
            continue
        plain = op_key(op), tuple(is_weight(v) for v in op.operands)
        if plain not in candidates:
            candidates[plain] = list(candidates_of(op, target, configs=2, configs_cut=2))
            if not candidates[plain]:
                hint = advice(op, target) or _too_large(op) or _elsewhere(op, target)
                hint = hint or 'CONTRIBUTING.md says how to add one, under "A kernel"'
                types = ", ".join(map(str, op.operand_types))
                raise PassError(f"no kernel for {op.name} on {target.kind} ({types}); {hint}", op)
        key: object = plain
        if len(candidates[plain]) > 1 and by_time.knows_times:
            around = surroundings(op)
            alike = plain, around.key()
            if alike not in known:
                task = around.task()
                known[alike] = plain, task.key
                tasks.setdefault(known[alike], task)
                candidates.setdefault(known[alike], candidates[plain])
            key = known[alike]
        keys[op] = key
    times = Counter(keys.values())
    chosen = dict(zip(tasks, by_time.choose(list(tasks.values()), [times[key] for key in tasks]), strict=True))
    written: dict[object, list[KernelAttr]] = {}
    picked: dict[object, Choice] = {}
    bound = {dim.name for dim in graph.scope.dims if dim.upper is not None}
    for op, key in keys.items():
        if key not in written:
            choice = chosen.get(key) or (choice_by_estimate(tasks[key], bound, target) if key in tasks else None)
            picked[key] = choice or Choice((best_by_estimate(candidates[key]),))
            if (kept := _kept.get()) is not None:
                plain = len(candidates[key]) == 1
                reason = "only kernel" if plain else "time" if chosen.get(key) is not None else "estimate"
                types = ", ".join(map(str, op.operand_types))
                kept.rows.append(Selection(op.name, types, times[key], picked[key].describe(), reason))
        choice = picked[key]
        whole = len(choice.candidates) > 1
        if key not in written:
            written[key] = [choice.attr()] if whole else choice.candidates[0].attrs()
        parts = [op] if whole else cut_in_place(op, choice.candidates[0].cut)
        for part, kernel in zip(parts, written[key], strict=True):
            part.attributes["kernel"] = kernel


@dataclass(frozen=True)
class SelectPass(ModulePass):
    """Choose kernels: `select{target="cuda" arch="sm_90a"}`, with `measure=true` by time on the card.

    `precision` says how products, convolutions and attention of f32 may be computed: `highest` (exactly), `high` (TF32)
    or `medium` (bf16). With `deterministic=false`, floats may be added in any order. With `peer-memory=false`,
    all-reduces do not write into the memory of other cards. `points` selects the values of the
    dims to measure: `hints` (without hints, the smallest and the largest value), `min`, `max`, or several of these
    joined by a plus. `budget` limits measuring to about so many seconds, compiling included. `report=true` prints the
    times of the best candidates. With `known=true` known times decide alone, and an op with several candidates and no
    known time is an error.
    """

    name = "select"

    target: str = "cpu"
    arch: str = ""
    precision: str = "highest"
    deterministic: bool = True
    peer_memory: bool = True
    measure: bool = False
    budget: float | None = None
    points: str = "hints"
    report: bool = False
    known: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = make_target(self.target, self.arch, self.precision, self.deterministic, self.peer_memory)
        set_target(op, target)
        strategies = self.points.split("+")
        if unknown := [s for s in strategies if s not in STRATEGIES]:
            known = ", ".join(STRATEGIES)
            raise PassError(f"unknown points {unknown[0]!r}; expected some of {known}, as in 'hints+max'")
        if self.budget is not None and not self.budget >= 0:
            raise PassError(f"budget is {self.budget}, expected a number of seconds, 0 or more")
        if self.measure and not self.known:
            require_device(target)
        if self.known:
            by_time = known_selector(target, strategies)
        else:
            by_time = selector(target, self.measure, strategies, self.budget)
        try:
            for graph in op.ops:
                if isinstance(graph, GraphOp):
                    select_graph(graph, target, by_time)
        finally:
            by_time.close()
        if (kept := _kept.get()) is not None:
            kept.log += by_time.log
        if self.report and by_time.log:
            show(by_time.log)
