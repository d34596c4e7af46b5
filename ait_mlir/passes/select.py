"""Choose for every op the kernel that runs it, and write the choice into the IR.

A candidate is a fragment: the op as it is on one kernel, or split into several ops, each on a kernel of its own
("library gemm,
then one fused kernel"). Without a card the smallest estimate wins; `measure` times the candidates on the card that is
there. An op
that already has a `kernel` keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.traits import View
from ait_mlir.dialects.ait.types import KernelAttr
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.kernels import Kernel, Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.gemm_packed import is_weight
from ait_mlir.passes.accesses import config_problem
from ait_mlir.passes.bufferize import op_key
from ait_mlir.passes.fragments import Fragment, fragments, place
from ait_mlir.passes.target import make_target, set_target

Config = dict[str, int]
Chooser = Callable[[Operation, Sequence["Candidate"], Target], "Candidate"]


@dataclass(frozen=True)
class Candidate:
    """A fragment with a kernel and its configuration for each of its ops, and the estimate in seconds."""

    fragment: Fragment
    kernels: tuple[tuple[Kernel, Config], ...]
    estimate: float

    def describe(self) -> str:
        return " + ".join(f"{k.provider}.{k.name}{c or ''}" for k, c in self.kernels)


def needs_kernel(op: Operation) -> bool:
    return not isinstance(op, ParamOp | ConstantOp | OutputOp) and not op.has_trait(View)


def candidates(op: Operation, target: Target, all_configs: bool = False) -> Iterator[Candidate]:
    """Every way to run `op` on the target."""
    for fragment in fragments(op, target):
        ways: list[tuple[tuple[tuple[Kernel, Config], ...], float]] = [((), 0.0)]
        for part in fragment.ops:
            options = [(k, c) for k in kernels_for(part, target) for c in _configs(k, part, target, all_configs)]
            ways = [((*done, (k, c)), cost + k.heuristic(part, target)) for done, cost in ways for k, c in options]
        for kernels, estimate in ways:
            yield Candidate(fragment, kernels, estimate)


def _configs(kernel: Kernel, op: Operation, target: Target, everything: bool) -> list[Config]:
    configs = kernel.configs(op, target)
    return configs if everything else configs[:1]


def by_estimate(op: Operation, found: Sequence[Candidate], target: Target) -> Candidate:
    """The candidate with the smallest estimate; of equals the one with fewer launches, then the first."""
    return min(found, key=lambda c: (c.estimate, len(c.kernels)))


def kernel_attr(kernel: Kernel, config: Config) -> KernelAttr:
    values = {key: IntegerAttr(value, i64) for key, value in config.items()}
    return KernelAttr(StringAttr(kernel.provider), DictionaryAttr(values))


def check_pinned(op: Operation, choice: KernelAttr, target: Target) -> None:
    """Raise `PassError` unless the kernel that the text asks for exists, and its configuration is one."""
    if (problem := config_problem(choice.config)) is not None:
        raise PassError(problem, op)
    try:
        kernel_of(choice.provider.data, op, target)
    except ValueError as e:
        raise PassError(str(e), op) from None


def select_graph(graph: GraphOp, target: Target, choose: Chooser, all_configs: bool) -> None:
    """Choose for each op of the graph; ops that are alike are chosen once."""
    chosen: dict[object, Candidate] = {}
    for op in list(graph.block.ops):
        if not needs_kernel(op):
            continue
        pinned = op.attributes.get("kernel")
        if isinstance(pinned, KernelAttr):
            check_pinned(op, pinned, target)
            continue
        key = (op_key(op), tuple(is_weight(v) for v in op.operands))
        choice = chosen.get(key)
        if choice is None:
            found = list(candidates(op, target, all_configs))
            if not found:
                raise PassError(
                    f"no kernel for {op.name} on {target.kind} ({', '.join(map(str, op.operand_types))}); "
                    "see docs/internals.md, section 4, for how to add one",
                    op,
                )
            choice = chosen[key] = choose(op, found, target)
        for part, (kernel, config) in zip(place(op, choice.fragment.cut), choice.kernels, strict=True):
            part.attributes["kernel"] = kernel_attr(kernel, config)


@dataclass(frozen=True)
class SelectPass(ModulePass):
    """Choose kernels: `select{target="cuda" arch="sm_90a"}`, with `measure=true` by time on the card."""

    name = "select"

    target: str = "cpu"
    arch: str = ""
    measure: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = make_target(self.target, self.arch)
        set_target(op, target)
        choose: Chooser = by_estimate
        if self.measure:
            from ait_mlir.passes.measure import by_time, require_device

            require_device(target)
            choose = by_time
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                select_graph(graph, target, choose, self.measure)
