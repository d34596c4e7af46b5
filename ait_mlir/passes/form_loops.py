"""Joins memory-bound ops into one launch, `ait.loops`.

A group grows from its last op upward: over producers that only the group uses, or that only move elements. The group
becomes one definition of an element (`ait_mlir/elements`), so intermediate values need no memory. What others use, too,
becomes a further result, where it has the shape of the last one, a number for each row, or rows of which the last one
has the groups (`join_loops.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.view import PermuteOp
from ait_mlir.lowering.kernels import Target
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.counted_sums import count_sums
from ait_mlir.passes.join_loops import Joins
from ait_mlir.passes.loop_costs import Costs
from ait_mlir.passes.loop_groups import Groups, is_recomputed
from ait_mlir.passes.row_sums import divide_row_sums

MAX_SWEEPS = 4


@dataclass(frozen=True)
class FormLoopsPass(ByEstimatePass):
    """Join memory-bound ops into one `ait.loops`; with a target, only where estimates say that it is faster."""

    name = "form-loops"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        if target is None or not target.is_gpu:
            return Former(block, target).run()
        return any([count_sums(block, target), divide_row_sums(block), Former(block, target).run()])


class Former:
    """Forms the loops of one block."""

    def __init__(self, block: Block, target: Target | None) -> None:
        self.groups = Groups(block, target)
        self.costs = Costs(self.groups)

    def run(self) -> bool:
        """Rewrite the block; returns whether anything changed. Loops of one sweep may join others in the next."""
        sweeps = 0
        while sweeps < MAX_SWEEPS and self._sweep():
            sweeps += 1
        joined = self.groups.on_gpu and Joins(self.groups, self.costs).run()
        return sweeps > 0 or joined

    def _sweep(self) -> bool:
        changed = False
        for root in reversed(list(self.groups.block.ops)):
            may_end = root not in self.groups.gone and self.groups.may_join(root) and self.groups.is_root(root)
            if group := self._best(root) if may_end else []:
                self.groups.replace(group, [self.groups.result(root)])
                changed = True
        return changed

    def _best(self, root: Operation) -> list[Operation]:
        """The group of ops, ending with `root`, that saves the most time; empty if no group saves time.

        The time includes the time that producers outside of the group may save as another group.
        """
        group = self.groups.grown(root)
        gains = [0.0, *(max(0.0, self.costs.gain(group[:n])) for n in range(1, len(group) + 1))]
        best = max(range(len(gains)), key=lambda n: (gains[n], n))
        views = next((n for n, op in enumerate(group) if not isinstance(op, ViewLike)), 0)
        views = views if any(isinstance(op, PermuteOp) for op in group[:views]) else 0
        parts = [*range(1, len(gains))] if 0 < best < len(group) else [views, best] if 0 < views < best else [best]
        if len(parts) > 1:
            best = max(parts, key=lambda n: (gains[n] + self._gain_of(group[n:]), n))
        chosen = group[: best if gains[best] > 0 else 1]
        for op in group[len(chosen) :]:  # members that joined late, after those left out
            if (isinstance(op, ViewLike) or is_recomputed(op, self.groups.scope)) and self.groups.joins(op, chosen):
                wider = [*chosen, op]
                chosen = wider if self.costs.gain(wider) > max(0.0, self.costs.gain(chosen)) else chosen
        return chosen if chosen and self.costs.gain(chosen) > 0 else []

    def _gain_of(self, rest: Sequence[Operation]) -> float:
        """The most seconds that a group saves which ends with the first op of `rest` that is not a view."""
        root = next((op for op in rest if not isinstance(op, ViewLike)), None)
        if root is None or not self.groups.is_root(root):
            return 0.0
        group = self.groups.grown(root)
        return max((self.costs.gain(group[:n]) for n in range(1, len(group) + 1)), default=0.0)
