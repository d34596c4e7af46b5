"""PyTorch as one untyped name: the importer works on its graphs, whose parts have no static types."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ait_mlir.errors import CompileError

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise CompileError(f"importing PyTorch models needs PyTorch ({error}); pip install torch") from error
