"""Passes that apply patterns: one class for each row of the table in `pipelines.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.passes.pipelines import PASSES, Patterns
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.engine.driver import Statistics
from ait_mlir.rewrites.engine.language import PatternSet
from ait_mlir.rewrites.families import pattern_set


@dataclass(frozen=True)
class PatternPass(ModulePass):
    """Apply sets of patterns together until none matches."""

    sets: ClassVar[tuple[str, ...]] = ()
    dialect: ClassVar[str] = "ait"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, pattern_set(*self.sets), dialect=self.dialect)


@cache
def pattern_pass(name: str, summary: str, sets: tuple[str, ...], dialect: str) -> type[PatternPass]:
    """The class of a pass that applies these sets of patterns."""
    title = "".join(part.capitalize() for part in name.split("-"))
    members = {"name": name, "sets": sets, "dialect": dialect, "__doc__": summary, "__module__": __name__}
    return dataclass(frozen=True)(type(f"{title}Pass", (PatternPass,), members))


def patterns_of(name: str) -> PatternSet:
    """The patterns of a pass of the table."""
    row = PASSES[name]
    assert isinstance(row, Patterns), f"{name} is no pass of patterns"
    return pattern_set(*row.sets)


def apply_pass(name: str, module: ModuleOp) -> Statistics:
    """Apply the patterns of a pass over `ait` to a module."""
    return rewrite(module, patterns_of(name))
