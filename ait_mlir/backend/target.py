"""The documented import path of `Target`: names only, from `ait_mlir.frontend.target`."""

from __future__ import annotations

from ait_mlir.frontend.target import Target

__all__ = ["Target"]
