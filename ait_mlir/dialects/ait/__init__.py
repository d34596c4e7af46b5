"""The `ait` dialect: pure values over tensors with dynamic dims in their types."""

from __future__ import annotations

from xdsl.ir import Dialect

from ait_mlir.dialects.ait import attention, data, elementwise, gemm, index, norm, reduce, scan, view
from ait_mlir.dialects.ait.types import DimsAttr, InductionAttr, KernelAttr, ShapeAttr, TensorType

AIT = Dialect(
    "ait",
    [
        *(*data.OPS, *elementwise.OPS, *gemm.OPS, *norm.OPS, *reduce.OPS, *view.OPS, *index.OPS, *attention.OPS),
        *scan.OPS,
    ],
    [TensorType, ShapeAttr, DimsAttr, KernelAttr, InductionAttr],
)
