"""The documented import path of the compiler: names only, from `ait_mlir.frontend` and `ait_mlir.runtime`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ait_mlir.compiler import base, dtype, ops, public, stable_set
from ait_mlir.compiler.model import AIT_DEFAULT_NUM_RUNTIMES, Model
from ait_mlir.frontend.compile import compile_model, safe_compile_model

if TYPE_CHECKING:
    from ait_mlir.compiler import symbolic, transform

__all__ = [
    "AIT_DEFAULT_NUM_RUNTIMES",
    "Model",
    "base",
    "compile_model",
    "dtype",
    "ops",
    "public",
    "safe_compile_model",
    "stable_set",
    "symbolic",
    "transform",
]


def __getattr__(name: str) -> object:
    if name in ("symbolic", "transform"):  # SymPy and the passes are loaded by who asks for them
        import importlib

        return importlib.import_module(f"ait_mlir.compiler.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
