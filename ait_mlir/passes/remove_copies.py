"""Remove the copies that the chosen kernels make unnecessary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait_rt import AIT_RT
from ait_mlir.rewrites.buffers import REMOVE_COPIES
from ait_mlir.rewrites.engine.apply import universe
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.driver import apply_patterns


@cache
def _compiled() -> CompiledPatterns:
    return compile_patterns(REMOVE_COPIES.patterns, universe({op.name: op for op in AIT_RT.operations}))


@dataclass(frozen=True)
class RemoveCopiesPass(ModulePass):
    """Read views in place and write into the parts of a concat, where the kernels accept the strides."""

    name = "remove-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, _compiled())
