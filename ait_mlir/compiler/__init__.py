"""The documented import path of the compiler: names only, from `ait_mlir.frontend`."""

from __future__ import annotations

from ait_mlir.compiler import base
from ait_mlir.frontend import ops
from ait_mlir.frontend.compile import compile_model

__all__ = ["base", "compile_model", "ops"]
