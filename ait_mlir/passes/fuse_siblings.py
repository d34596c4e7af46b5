"""Make one launch of elementwise operations that read the same tensors, and none of those that are small."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.siblings import SIBLINGS


@dataclass(frozen=True)
class FuseSiblingsPass(ModulePass):
    """Merge outlined elementwise operations that are not connected; the last of the fusions, so that it takes nothing
    that another one would put elsewhere."""

    name = "fuse-siblings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, SIBLINGS)
