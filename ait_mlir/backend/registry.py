"""The documented import path of `reg` and `get`: names only, from `ait_mlir.frontend`."""

from __future__ import annotations

from ait_mlir.frontend.external_ops import reg
from ait_mlir.frontend.registry import get

__all__ = ["get", "reg"]
