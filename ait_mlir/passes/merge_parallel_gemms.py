"""Make one matrix product of several with one input."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.gemm import PARALLEL_GEMMS


@dataclass(frozen=True)
class MergeParallelGemmsPass(ModulePass):
    """Merge gemms of one input with params, and the bias adds of their parts."""

    name = "merge-parallel-gemms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, PARALLEL_GEMMS)
