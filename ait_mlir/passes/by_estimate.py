"""The base of passes that rewrite a graph where estimates say that the result is faster."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.ir.pipeline import TellingPass
from ait_mlir.lowering.module_target import make_target
from ait_mlir.lowering.target import Target


@dataclass(frozen=True)
class ByEstimatePass(TellingPass):
    """Rewrites the block of each graph: for a `target` of this `arch` where it is faster, without one everywhere."""

    target: str = ""
    arch: str = ""

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        target = make_target(self.target, self.arch) if self.target else None
        return any([self.rewrite(graph.block, target) for graph in module.ops if isinstance(graph, GraphOp)])

    @abstractmethod
    def rewrite(self, block: Block, target: Target | None) -> bool:
        """Rewrite a block; returns whether anything changed."""
