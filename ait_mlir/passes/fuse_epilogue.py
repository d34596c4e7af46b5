"""Move elementwise operations into the epilogues of contractions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.epilogue import EPILOGUE


@dataclass(frozen=True)
class FuseEpiloguePass(ModulePass):
    """Let elementwise operations that alone use a contraction join its epilogue."""

    name = "fuse-epilogue"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, EPILOGUE)
