"""The operators of the builder, under their documented names: `ops.gemm_rcr_bias()(x, weight, bias)`."""

from __future__ import annotations

import sys

from ait_mlir.frontend.ops.attention import *
from ait_mlir.frontend.ops.b2b_bmm import *
from ait_mlir.frontend.ops.constant import *
from ait_mlir.frontend.ops.conv import *
from ait_mlir.frontend.ops.cumulative import *
from ait_mlir.frontend.ops.detection import *
from ait_mlir.frontend.ops.elementwise import *
from ait_mlir.frontend.ops.experts import *
from ait_mlir.frontend.ops.foreign import *
from ait_mlir.frontend.ops.fourier import *
from ait_mlir.frontend.ops.gated_norm import *
from ait_mlir.frontend.ops.gemm import *
from ait_mlir.frontend.ops.grouped import *
from ait_mlir.frontend.ops.index import *
from ait_mlir.frontend.ops.jagged import *
from ait_mlir.frontend.ops.math import *
from ait_mlir.frontend.ops.norm import *
from ait_mlir.frontend.ops.pad import *
from ait_mlir.frontend.ops.permuted import *
from ait_mlir.frontend.ops.pool import *
from ait_mlir.frontend.ops.products import *
from ait_mlir.frontend.ops.quantize import *
from ait_mlir.frontend.ops.ranges import *
from ait_mlir.frontend.ops.rearrange import *
from ait_mlir.frontend.ops.reduce import *
from ait_mlir.frontend.ops.resize import *
from ait_mlir.frontend.ops.rotary import *
from ait_mlir.frontend.ops.scan import *
from ait_mlir.frontend.ops.slices import *
from ait_mlir.frontend.ops.sorting import *
from ait_mlir.frontend.ops.view import *

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    name
    for path, file in [*sys.modules.items()]
    if path.startswith(f"{__name__}.")
    for name in getattr(file, "__all__", ())
]
