"""Passes that apply patterns: one class for each row `Patterns` of the table in `pipelines.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ait_mlir import outside
from ait_mlir.ir.pipeline import TellingPass
from ait_mlir.lowering.module_target import make_target
from ait_mlir.lowering.target import Capability
from ait_mlir.passes.assumptions import assumes
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.engine.language import PatternSet
from ait_mlir.rewrites.families import pattern_set

OUTSIDE_PASS = "simplify"
"""The pass that also applies the patterns of operators from outside."""


@dataclass(frozen=True)
class PatternPass(TellingPass):
    """Apply sets of patterns together until none matches."""

    sets: ClassVar[tuple[str, ...]] = ()
    dialect: ClassVar[str] = "ait"

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        patterns = pattern_set(*self.sets)
        if self.name == OUTSIDE_PASS:
            patterns = with_outside(patterns)
        made = rewrite(module, patterns, dialect=self.dialect)
        return made.rewrites > 0 or made.removed > 0


@dataclass(frozen=True)
class AssumingPatternPass(PatternPass):
    """A pass whose patterns apply only to modules that declare an assumption (`assumptions.py`).

    With `assume` the pass applies to all modules.
    """

    assumption: ClassVar[str] = ""
    assume: bool = False

    def applies_to(self, module: ModuleOp) -> bool:
        """Whether the module declares the assumption, or `assume` is set."""
        return self.assume or assumes(module, self.assumption)

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        return self.applies_to(module) and super().changes(ctx, module)


@dataclass(frozen=True)
class TargetPatternPass(PatternPass):
    """A pass whose patterns apply for targets that have a capability, or for those that lack it; without a `target`
    everywhere."""

    capability: ClassVar[Capability]
    lacking: ClassVar[bool] = False
    target: str = ""
    arch: str = ""

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        applies = not self.target or make_target(self.target, self.arch).has(self.capability) != self.lacking
        return applies and super().changes(ctx, module)


@cache
def pattern_pass(
    name: str,
    summary: str,
    sets: tuple[str, ...],
    dialect: str,
    assumption: str = "",
    capability: Capability | None = None,
    lacking: bool = False,
) -> type[PatternPass]:
    """The class of a pass that applies these sets of patterns; with an assumption, only to modules that declare it;
    with a capability, only for targets that have it, or lack it."""
    title = "".join(part.capitalize() for part in name.split("-"))
    members: dict[str, object] = {"name": name, "sets": sets, "dialect": dialect, "__doc__": summary}
    members["__module__"] = __name__
    base: type[PatternPass] = PatternPass
    if assumption:
        members["assumption"], base = assumption, AssumingPatternPass
    if capability is not None:
        members |= {"capability": capability, "lacking": lacking}
        base = TargetPatternPass
    made = cast("type[PatternPass]", type(f"{title}Pass", (base,), members))
    return dataclass(frozen=True)(made)


def with_outside(patterns: PatternSet) -> PatternSet:
    """The patterns plus the patterns of operators from outside; the same set if there are none."""
    more = tuple(family for row in outside.rows().values() for family in row.patterns)
    return patterns + PatternSet(more) if more else patterns
