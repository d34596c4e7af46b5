"""The documented import paths of operators: names only, from `ait_mlir.frontend.ops`.

>>> from ait_mlir.compiler.ops.common.epilogue import FuncEnum
>>> from ait_mlir.compiler.ops.gemm_universal.gemm_rcr_bias import gemm_rcr_bias
"""

from __future__ import annotations

from ait_mlir.compiler.ops.paths import make_modules
from ait_mlir.frontend.ops import *  # noqa: F403
from ait_mlir.frontend.ops import __all__ as _names

__all__ = list(_names)  # pyright: ignore[reportUnsupportedDunderAll]

make_modules(__name__)
