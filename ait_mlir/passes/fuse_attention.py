"""Make attention of two batched products with a softmax between, and let it read keys and values in pieces."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.rewrites.attention import ATTENTION, PIECES
from ait_mlir.rewrites.attention_heads import HEADS
from ait_mlir.rewrites.engine.apply import rewrite


@dataclass(frozen=True)
class FuseAttentionPass(ModulePass):
    """Replace bmm, scale, mask, softmax, bmm by ait.attention; let that take the place of concats in front of it, and
    share heads of keys that were repeated."""

    name = "fuse-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Compiling the many variants takes longer than a small graph without attention does as a whole.
        if any(isinstance(inner, SoftmaxOp) for inner in op.walk()):
            rewrite(op, ATTENTION)
        if any(isinstance(inner, AttentionOp) for inner in op.walk()):
            rewrite(op, HEADS)
            rewrite(op, PIECES)
