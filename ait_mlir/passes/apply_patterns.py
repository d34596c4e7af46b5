"""Applies the patterns of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.driver import apply_patterns
from ait_mlir.rewrites.file import load_patterns


@dataclass(frozen=True)
class ApplyPatternsPass(ModulePass):
    """Apply the `pdl.pattern` operations of a file until none matches.

    `file` is relative to the working directory. `reverse` visits the last operations first, so that patterns rooted
    at the end of a chain win over shorter patterns inside it.
    """

    name = "apply-patterns"

    file: str
    reverse: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, load_patterns(ctx, Path(self.file)), reverse=self.reverse)
