"""Strided operators read slices in place; `transform_strided_ops` shows the result."""

from __future__ import annotations

from ait_mlir.compiler.transform.transform_strided_ops import transform_strided_ops

__all__ = ["transform_strided_ops"]
