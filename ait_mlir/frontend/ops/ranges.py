"""Ranges of numbers, and dims as tensors."""

from __future__ import annotations

from ait_mlir.building.writer import Writer
from ait_mlir.compositions import ranges
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dims import const
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim, maximum
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor, normalize_dtype

__all__ = ["arange"]


class arange(Operator):
    """start, start + step, ... up to `end`, which is excluded: one dim. A single argument is `end`, with start 0.

    `start` and `end` may be dims or values of `ops.size`; `step` is a number other than 0.
    """

    def __init__(self, dtype: str = "int64"):
        self.dtype = normalize_dtype(dtype)

    def __call__(self, start: DimLike, end: DimLike | None = None, step: int = 1) -> Tensor:
        if step == 0:
            raise self.fail("the step is 0, expected another number")
        low, high = (as_dim(0), as_dim(start)) if end is None else (as_dim(start), as_dim(end))
        span = high - low if step > 0 else low - high
        count = maximum((span + (abs(step) - 1)) // abs(step), 0)
        return self.write(ranges.arange, low, const(step), count, BY_NAME[self.dtype].ir)

    def number(self, value: IntVar) -> Tensor:
        """A dim as a tensor of rank 0."""
        return self.write(Writer.number, value, BY_NAME[self.dtype].ir)
