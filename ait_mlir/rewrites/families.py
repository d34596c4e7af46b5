"""The table of families: the modules with patterns, constraints and native rewrites."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module

from ait_mlir import outside
from ait_mlir.rewrites.engine.language import PatternFamily, PatternSet
from ait_mlir.rewrites.engine.registry import Registry

FAMILIES: tuple[str, ...] = (
    "attention",
    "attention_masks",
    "attention_scores",
    "attention_stored",
    "bags",
    "conv",
    "conv_phases",
    "conv_stored",
    "elementwise.algebra",
    "elementwise.clamp",
    "elementwise.merge",
    "elementwise.neighbours",
    "elementwise.siblings",
    "gemm.batches",
    "gemm.epilogue",
    "gemm.results",
    "gemm.padding",
    "gemm.planes",
    "gemm.products",
    "gemm.quantized",
    "gemm.reshaped",
    "gemm.scaled",
    "gemm.spellings",
    "gemm.stored",
    "norm",
    "concat",
    "rotary",
    "quantize",
    "documented",
    "view",
    "buffers",
    "nested_buffers",
)
"""Modules of `ait_mlir.rewrites`, imported in this order until a requested name is found. Modules on buffers come last,
because they need the kernels."""

_MODULES = ("ait_mlir.rewrites.engine.constraints", *(f"ait_mlir.rewrites.{family}" for family in FAMILIES))

CONSTRAINTS = Registry("constraint", _MODULES)
FINDERS = Registry("finder", _MODULES)
NATIVES = Registry("native rewrite", _MODULES)


@cache
def pattern_set(*names: str) -> PatternSet:
    """The sets of these names, `FAMILY:SET`, as one, in this order."""
    sets = [_named(name) for name in names]
    return PatternSet(tuple(family for found in sets for family in found.families))


def _named(name: str) -> PatternSet:
    family, _, attribute = name.partition(":")
    found = getattr(import_module(f"ait_mlir.rewrites.{family}"), attribute, None) if family in FAMILIES else None
    if not isinstance(found, PatternSet):
        raise ValueError(f"no set of patterns is called {name!r}; expected FAMILY:SET, with a family of {FAMILIES}")
    return found


def family_of(pattern: str) -> PatternFamily | None:
    """The family of a pattern that was applied: of the modules loaded until now, or from outside."""
    loaded = [module for name in _MODULES if (module := sys.modules.get(name)) is not None]
    ours = [found for module in loaded for found in vars(module).values() if isinstance(found, PatternFamily)]
    others = [family for row in outside.rows().values() for family in row.patterns]
    return next((family for family in (*ours, *others) if pattern in family.names), None)
