"""The Python builder: tensors with dynamic dims, operators, layers, and `compile_model`.

>>> x = Tensor(shape=[IntVar([1, 64], name="batch"), 768], name="x", is_input=True)
>>> weight = Tensor(shape=[3072, 768], name="weight")
>>> y = ops.gemm_rcr()(x, weight).mark_as_output("y")
>>> model = compile_model(y, detect_target(), "./tmp", "up", constants={"weight": data})
"""

from __future__ import annotations

from ait_mlir.frontend import nn, ops
from ait_mlir.frontend.compile import compile_model
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import build_module
from ait_mlir.frontend.intvar import IntImm, IntVar, IntVarTensor
from ait_mlir.frontend.jagged import JaggedDim, JaggedIntVar
from ait_mlir.frontend.nn import Parameter
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.target import Target, detect_target
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "BuildError",
    "IntImm",
    "IntVar",
    "IntVarTensor",
    "JaggedDim",
    "JaggedIntVar",
    "Operator",
    "Parameter",
    "Target",
    "Tensor",
    "build_module",
    "compile_model",
    "detect_target",
    "nn",
    "ops",
]
