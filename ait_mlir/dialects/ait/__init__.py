"""The `ait` dialect: pure values over tensors with dynamic dims in their types."""

from __future__ import annotations

from xdsl.ir import Dialect

from ait_mlir.dialects.ait import attention, data, elementwise, gemm, index, norm, reduce, view
from ait_mlir.dialects.ait.types import DimsAttr, KernelAttr, ShapeAttr, TensorType

AIT = Dialect(
    "ait",
    [*data.OPS, *elementwise.OPS, *gemm.OPS, *norm.OPS, *reduce.OPS, *view.OPS, *index.OPS, *attention.OPS],
    [TensorType, ShapeAttr, DimsAttr, KernelAttr],
)
