"""Layers: parameters and the operators on them, under their documented names."""

from __future__ import annotations

import sys

from ait_mlir.frontend.nn.activation import *
from ait_mlir.frontend.nn.attention import *
from ait_mlir.frontend.nn.batch_norm import *
from ait_mlir.frontend.nn.conv import *
from ait_mlir.frontend.nn.detection import *
from ait_mlir.frontend.nn.embedding import *
from ait_mlir.frontend.nn.linear import *
from ait_mlir.frontend.nn.module import *
from ait_mlir.frontend.nn.norm import *
from ait_mlir.frontend.nn.pad import *
from ait_mlir.frontend.nn.parameter import *
from ait_mlir.frontend.nn.paths import make_modules
from ait_mlir.frontend.nn.pool import *
from ait_mlir.frontend.nn.proposal import *
from ait_mlir.frontend.nn.recurrent import *
from ait_mlir.frontend.nn.resize import *
from ait_mlir.frontend.nn.vanilla import *
from ait_mlir.frontend.nn.view import *

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    name
    for path, file in [*sys.modules.items()]
    if path.startswith(f"{__name__}.")
    for name in getattr(file, "__all__", ())
]

make_modules(sys.modules[__name__])
