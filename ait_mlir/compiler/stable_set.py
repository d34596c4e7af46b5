"""The documented import path of `StableSet`."""

from __future__ import annotations

from ait_mlir.frontend.stable_set import StableSet

__all__ = ["StableSet"]
