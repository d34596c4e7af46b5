"""PyTorch models: imports `torch.export` programs as `ait` modules; `compile` exports, imports, compiles and loads."""

from __future__ import annotations

from ait_mlir.importers.torch.archive import read_program
from ait_mlir.importers.torch.compiled import CompiledModule, compile, from_torch
from ait_mlir.importers.torch.errors import ImportFailure, UnsupportedOps
from ait_mlir.importers.torch.program import Imported, import_program

__all__ = [
    "CompiledModule",
    "ImportFailure",
    "Imported",
    "UnsupportedOps",
    "compile",
    "from_torch",
    "import_program",
    "read_program",
]
