"""The native rewrites a pattern may call: a closed set, each documented where it is defined."""

from __future__ import annotations

from ait_mlir.rewrites.engine.natives import attention as attention
from ait_mlir.rewrites.engine.natives import elementwise as elementwise
from ait_mlir.rewrites.engine.natives import gemm as gemm
from ait_mlir.rewrites.engine.natives import groups as groups
from ait_mlir.rewrites.engine.natives import norm as norm
from ait_mlir.rewrites.engine.natives import regions as regions
from ait_mlir.rewrites.engine.natives import rms_norm as rms_norm
from ait_mlir.rewrites.engine.natives import rotary as rotary
from ait_mlir.rewrites.engine.natives import siblings as siblings
from ait_mlir.rewrites.engine.natives import views as views
from ait_mlir.rewrites.engine.natives.table import NATIVES

__all__ = ["NATIVES"]
