"""`Parameter`, under its documented name."""

from __future__ import annotations

from ait_mlir.frontend.nn import Parameter

__all__ = ["Parameter"]
