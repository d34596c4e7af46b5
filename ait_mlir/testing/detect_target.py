"""The documented import path of `detect_target`."""

from __future__ import annotations

from ait_mlir.frontend.target import detect_target

__all__ = ["detect_target"]
