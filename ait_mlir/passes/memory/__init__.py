"""Offsets of buffers in the arena: a planner and an independent verifier, on lifetimes and dim expressions."""

from __future__ import annotations

from ait_mlir.passes.memory.buffers import ALIGNMENT, Buffer, MemoryPlanError, Plan
from ait_mlir.passes.memory.planner import naive, plan
from ait_mlir.passes.memory.verifier import verify

__all__ = ["ALIGNMENT", "Buffer", "MemoryPlanError", "Plan", "naive", "plan", "verify"]
