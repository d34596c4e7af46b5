"""Operators that make tensors from numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor


class full(Operator):
    """A tensor of `shape` filled with one number."""

    def __call__(self, shape: Sequence[DimLike], fill_value: float, dtype: str = "float16") -> Tensor:
        self.begin()
        return self.finish(Tensor(shape=shape, dtype=dtype, value=fill_value))
