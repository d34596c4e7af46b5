"""Strided operators read the parts of a split; `transform_strided_ops` shows the result."""

from __future__ import annotations

from ait_mlir.frontend.stable_set import StableSet

__all__ = ["StableSet"]
