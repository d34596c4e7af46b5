"""Applying patterns to text in tests."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import pdl
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.rewrites.apply import universe
from ait_mlir.rewrites.engine.compile import compile_patterns
from ait_mlir.rewrites.engine.driver import Statistics, apply_patterns


def parse(text: str) -> ModuleOp:
    """Parse and verify text."""
    return parse_text(context(), text)


def rewritten(text: str, patterns: Sequence[pdl.PatternOp], reverse: bool = False) -> tuple[ModuleOp, Statistics]:
    """The verified module after applying patterns to text."""
    module = parse(text)
    statistics = apply_patterns(module, compile_patterns(patterns, universe()), reverse=reverse)
    check(module)
    return module, statistics


def names(module: ModuleOp) -> list[str]:
    """The names of the operations of the first graph, in order, without those of regions."""
    graph = module.body.block.first_op
    assert graph is not None
    return [op.name for op in graph.regions[0].block.ops]
