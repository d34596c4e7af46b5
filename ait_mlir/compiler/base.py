"""The documented import path of tensors, dims and operators: names only, from `ait_mlir.frontend`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from ait_mlir.compiler.dtype import get_dtype_size, normalize_dtype
from ait_mlir.frontend.constant_data import (
    ConstantTensorData,
    HostConstantTensorData,
    NumpyConstantTensorData,
    TorchConstantTensorData,
)
from ait_mlir.frontend.intvar import DimLike, IntImm, IntVar, IntVarTensor
from ait_mlir.frontend.jagged import JaggedDim, JaggedIntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.stable_set import StableSet
from ait_mlir.frontend.tensor import Tensor, aligned_size

__all__ = [
    "DynamicProfileStrategy",
    "IntImm",
    "IntVar",
    "IntVarTensor",
    "JaggedDim",
    "JaggedIntVar",
    "Operator",
    "StableSet",
    "Tensor",
    "get_aligned_size",
    "get_dtype_size",
    "normalize_dtype",
]

get_aligned_size = aligned_size
_ConstantTensorData = ConstantTensorData
_HostConstantTensorData = HostConstantTensorData
_NumpyConstantTensorData = NumpyConstantTensorData
_TorchConstantTensorData = TorchConstantTensorData


class DynamicProfileStrategy(Enum):
    """The sizes of dynamic dims for which kernels are chosen: the smallest, the largest, or all hints."""

    MIN = 1
    MAX = 2
    HINTS = 3


def _create_host_zero_tensor(  # pyright: ignore[reportUnusedFunction]
    shape: Sequence[DimLike],
    name: str | None = None,
    dst_ops: Iterable[Operator] | None = None,
    dtype: str = "float16",
    is_output: bool = False,
    is_internal_constant: bool = True,
) -> Tensor:
    """A weight whose data are zeros."""
    tensor = Tensor(
        shape, name, dst_ops=dst_ops, dtype=dtype, is_output=is_output, is_internal_constant=is_internal_constant
    )
    tensor.bind(HostConstantTensorData(bytes(tensor.size_bytes()), dtype))
    return tensor
