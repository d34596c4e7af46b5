"""The documented import path of settings for debugging: names only, from `ait_mlir.frontend`."""

from __future__ import annotations

from ait_mlir.frontend.compile_options import AITDebugSettings

__all__ = ["AITDebugSettings"]
