"""The native rewrites a pattern may call."""

from __future__ import annotations

from ait_mlir.rewrites.engine.registry import Registry

NATIVES = Registry("native rewrite")
