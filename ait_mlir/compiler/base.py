"""The documented import path of tensors and dims: names only, from `ait_mlir.frontend`."""

from __future__ import annotations

from ait_mlir.frontend.intvar import IntImm, IntVar, IntVarTensor
from ait_mlir.frontend.jagged import JaggedDim, JaggedIntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["IntImm", "IntVar", "IntVarTensor", "JaggedDim", "JaggedIntVar", "Operator", "Tensor"]
