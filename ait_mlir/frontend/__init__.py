"""The Python builder: tensors with dynamic dims, operators, layers, and `compile_model`."""

from __future__ import annotations

from ait_mlir.frontend import nn, ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import build_module
from ait_mlir.frontend.intvar import IntImm, IntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["BuildError", "IntImm", "IntVar", "Operator", "Tensor", "build_module", "nn", "ops"]
