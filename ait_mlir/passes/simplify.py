"""Remove operations that change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.simplify import SIMPLIFY


@dataclass(frozen=True)
class SimplifyPass(ModulePass):
    """Remove neutral elements, identities and no-ops; compose and cancel views."""

    name = "simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, SIMPLIFY)
