"""Joins that give one launch several results: values that others use, too, and reductions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.loops import FoldOp, LoopsOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.elements import NoElements
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.passes.loop_costs import GAIN, Costs
from ait_mlir.passes.loop_groups import MAX_MEMBERS, Groups


@dataclass
class Joins:
    """The joins of one block, on a GPU."""

    groups: Groups
    costs: Costs

    def run(self) -> bool:
        """Join what may be joined; returns whether anything changed."""
        return any([self._join_producers(), self._join_siblings()])

    def _join_producers(self) -> bool:
        """Let one launch also store what others use of the values that it needs, such as the scale of each row beside
        the numbers that it quantises, or a residual sum beside its norm.
        """
        changed = False
        for root in reversed(list(self.groups.block.ops)):
            if root in self.groups.gone or not self.groups.may_join(root) or not self.groups.is_root(root):
                continue
            if not any(
                isinstance(v.owner, Operation) and self.groups.joins_stored(v.owner, [root]) for v in root.operands
            ):
                continue
            group = self.groups.grown(root, stores=True)
            parts = [group[:n] for n in range(2, len(group) + 1)]
            parts = [part for part in parts if len(self.groups.results(part, stores=True)) > 1]
            parts = [part for part in parts if self.costs.gains(part, stores=True)[1] > 0]
            if parts:
                best = max(parts, key=lambda part: self.costs.gains(part, stores=True))
                self.groups.replace(best, self.groups.results(best, stores=True))
                changed = True
        return changed

    def _join_siblings(self) -> bool:
        """Join reductions of the same elements, such as a mean and a variance, so that these are read once."""
        changed = False
        for op in reversed(list(self.groups.block.ops)):
            others = self._siblings(op) if op not in self.groups.gone and self._is_sibling(op) else set[Operation]()
            for other in sorted(others, key=self.groups.place.__getitem__, reverse=True):
                group = self._grown_beside([op, other])
                if group and self._gain_beside(group) > 0:
                    self.groups.replace(group, self._first_results(group))
                    changed = True
                    break
        return changed

    def _is_sibling(self, op: Operation) -> bool:
        """Whether an op is a reduction that may be one of two in a launch."""
        inner = op.block.ops if isinstance(op, LoopsOp) else ()
        folds = isinstance(op, ReduceOp) or any(isinstance(i, FoldOp) for i in inner)
        return folds and len(op.results) == 1 and self.groups.may_join(op) and self.groups.is_root(op)

    def _siblings(self, op: Operation) -> set[Operation]:
        """Earlier reductions that read an operand of `op`, have a result of the same shape, and are not used before
        `op`.
        """
        (result,), found = op.results, set[Operation]()
        for other in {use.operation for value in op.operands for use in value.uses}:
            if (
                other in self.groups.place
                and other not in self.groups.gone
                and self.groups.place[other] < self.groups.place[op]
            ):
                same = self._is_sibling(other) and tensor_type(other.results[0]).dims == tensor_type(result).dims
                after = [use.operation for use in other.results[0].uses] if same else [op]
                if all(self.groups.place.get(user, -1) > self.groups.place[op] for user in after):
                    found.add(other)
        return found

    def _first_results(self, group: Sequence[Operation]) -> list[SSAValue]:
        """The results of the two reductions that a group begins with."""
        return [self.groups.result(op) for op in group[:2]]

    def _grown_beside(self, group: list[Operation]) -> list[Operation]:
        """Two reductions and the elementwise ops before them that nothing else uses; empty if they do not fit."""
        while True:
            try:
                loops = self.groups.standalone(self.groups.made(group, self._first_results(group)), group[0])
            except NoElements:
                loops = None
            if loops is None or not self.groups.is_fit(loops, group):
                return group[:-1] if len(group) > 2 else []
            before = {v.owner for member in group for v in member.operands}
            found = [
                op
                for op in before
                if isinstance(op, FusedElementwiseOp | ScalarLike)
                and op not in group
                and self.groups.is_inside(op, group)
                and self.groups.joins(op, group)
            ]
            if not found or len(group) == MAX_MEMBERS:
                return group
            group = [*group, max(found, key=self.groups.place.__getitem__)]

    def _gain_beside(self, group: Sequence[Operation]) -> float:
        """The seconds that one launch of two reductions saves; at most 0 unless it is clearly faster."""
        assert self.groups.target is not None
        loops = self.groups.standalone(self.groups.made(group, self._first_results(group)), group[0])
        before = sum(self.costs.alone(op, group) for op in group[2:]) + sum(
            best.seconds for op in group[:2] if (best := self.costs.fastest(op)) is not None
        )
        return before - GAIN * best_seconds(loops, self.groups.target)
