"""ONNX models: imports them as `ait` modules; `load_onnx` imports, compiles and loads one."""

from __future__ import annotations

from ait_mlir.importers.onnx.compiled import LoadedOnnx, load_onnx
from ait_mlir.importers.onnx.errors import ImportFailure, UnsupportedOps
from ait_mlir.importers.onnx.program import Imported, import_model

__all__ = ["ImportFailure", "Imported", "LoadedOnnx", "UnsupportedOps", "import_model", "load_onnx"]
