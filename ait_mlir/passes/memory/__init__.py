"""Offsets of buffers in the arena: a planner on lifetimes and dim expressions."""

from __future__ import annotations

from ait_mlir.passes.memory.buffers import ALIGNMENT, Buffer, MemoryPlanError, Plan
from ait_mlir.passes.memory.planner import naive, plan

__all__ = ["ALIGNMENT", "Buffer", "MemoryPlanError", "Plan", "naive", "plan"]
