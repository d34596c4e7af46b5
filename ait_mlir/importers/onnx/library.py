"""Imports `onnx` with type `Any`, because its messages have no static types."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ait_mlir.errors import CompileError

try:
    onnx: Any = import_module("onnx")
    for _part in ("checker", "inliner", "numpy_helper", "shape_inference", "version_converter"):
        import_module(f"onnx.{_part}")
except ImportError as error:
    raise CompileError(f"importing ONNX models needs onnx ({error}); pip install 'ait_mlir[onnx]'") from error
