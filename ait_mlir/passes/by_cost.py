"""Rewrites that are made only where the estimates of the target's kernels say that they pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, ParamOp
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.lowering.fragments import offers
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import make_target


def seconds_of(op: Operation, target: Target) -> float | None:
    """The estimate of the fastest kernel for an op; 0 for what runs on none; None if no kernel can run it."""
    if isinstance(op, ViewLike | ParamOp | ConstantOp):
        return 0.0
    return min((f.seconds for f in offers(op, target) if not f.only_timed), default=None)


@dataclass
class Trial:
    """New ops in front of another op. They stay only if they are estimated to take less time than what they replace."""

    before: Operation
    target: Target
    made: list[Operation] = field(default_factory=list[Operation])

    def add(self, op: Operation) -> SSAValue:
        """Insert an op; returns its first result."""
        block = self.before.parent
        assert block is not None
        op.location = self.before.location
        block.insert_op_before(op, self.before)
        self.made.append(op)
        return op.results[0]

    def pays(self, old: Sequence[Operation]) -> bool:
        """Whether the new ops take less time than the old ones."""
        new = [seconds_of(op, self.target) for op in self.made]
        now = [seconds_of(op, self.target) for op in old]
        if any(s is None for s in new):
            return False
        return any(s is None for s in now) or sum(s or 0.0 for s in new) < sum(s or 0.0 for s in now)

    def drop(self) -> None:
        """Remove the new ops."""
        for op in reversed(self.made):
            op.detach()
            op.erase()


def erase_unused(ops: Sequence[Operation]) -> None:
    """Erase ops, the last ones first, that nothing uses any more."""
    for op in reversed(ops):
        if all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()


@dataclass(frozen=True)
class CostPass(ModulePass):
    """Base of the passes that compare estimates: `target` and `arch` as of `select`."""

    target: str = "cpu"
    arch: str = ""

    def graphs(self, module: ModuleOp) -> list[GraphOp]:
        """The graphs of the module."""
        return [op for op in module.ops if isinstance(op, GraphOp)]

    def chosen(self) -> Target:
        """The target of the estimates."""
        return make_target(self.target, self.arch)
