"""The documented import path for converters: tensors, dims and all operators."""

from __future__ import annotations

from ait_mlir.compiler.base import DynamicProfileStrategy, IntImm, IntVar, IntVarTensor, Tensor
from ait_mlir.frontend.ops import *  # noqa: F403
from ait_mlir.frontend.ops import __all__ as _names

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "DynamicProfileStrategy",
    "IntImm",
    "IntVar",
    "IntVarTensor",
    "Tensor",
    *_names,
]
