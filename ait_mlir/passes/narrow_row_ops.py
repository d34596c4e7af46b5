"""Compute softmax and norms from the narrow type that a model widened for them alone."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.narrow import NARROW


@dataclass(frozen=True)
class NarrowRowOpsPass(ModulePass):
    """Part of no phase: the importer of PyTorch models applies it, because it takes a rounding out of a model."""

    name = "narrow-row-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, NARROW)
