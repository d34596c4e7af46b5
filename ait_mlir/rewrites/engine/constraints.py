"""The constraints a pattern may require: predicates on matched operations, values and attributes."""

from __future__ import annotations

from ait_mlir.rewrites.engine.registry import Registry

CONSTRAINTS = Registry("constraint")
