"""Operators that make tensors from numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend.intvar import DimLike, IntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["full"]


class full(Operator):
    """A tensor filled with one number; `shape` is a list of dims or a single dim."""

    def __call__(self, shape: Sequence[DimLike] | DimLike, fill_value: float, dtype: str = "float16") -> Tensor:
        dims = [shape] if isinstance(shape, IntVar | int) else shape
        return self.finish(Tensor(shape=dims, dtype=dtype, value=fill_value))
