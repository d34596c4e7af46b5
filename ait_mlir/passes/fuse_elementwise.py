"""Make one pass over memory of connected elementwise operations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.elementwise import ELEMENTWISE
from ait_mlir.rewrites.engine.apply import rewrite


@dataclass(frozen=True)
class FuseElementwisePass(ModulePass):
    """Outline every elementwise operation and merge connected ones of the same shape."""

    name = "fuse-elementwise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, ELEMENTWISE)
