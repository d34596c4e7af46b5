"""The table that native rewrites register in."""

from __future__ import annotations

from ait_mlir.rewrites.engine.registry import Registry

NATIVES = Registry("native rewrite")
