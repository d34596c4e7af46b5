"""The documented import path of `reg` and `get`: names only, from `ait_mlir.frontend.registry`."""

from __future__ import annotations

from ait_mlir.frontend.registry import get, reg

__all__ = ["get", "reg"]
