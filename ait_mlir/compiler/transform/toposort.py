"""Tensors in the order in which they are computed."""

from __future__ import annotations

from ait_mlir.frontend.wiring import toposort

__all__ = ["toposort"]
