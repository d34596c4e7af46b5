"""Make attention of two batched products with a softmax between, whatever the spelling of its mask."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.attention import ATTENTION
from ait_mlir.rewrites.attention_masks import MASKS, TRIANGLES
from ait_mlir.rewrites.engine.apply import rewrite


def fuse_masked_attention(module: ModuleOp) -> None:
    """Add masks that choose, make attention, and make it causal where its mask is a triangle."""
    for patterns in (MASKS, ATTENTION, TRIANGLES):
        rewrite(module, patterns)


@dataclass(frozen=True)
class FuseMaskedAttentionPass(ModulePass):
    """`fuse-attention`, and what the importer alone may assume about masks: no phase runs it."""

    name = "fuse-masked-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fuse_masked_attention(op)
