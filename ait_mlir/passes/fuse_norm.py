"""Move residual adds into norms."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.norm import NORM


@dataclass(frozen=True)
class FuseNormPass(ModulePass):
    """Let a residual add that feeds a norm become its prologue."""

    name = "fuse-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, NORM)
