"""Ranges of numbers, and dims as tensors."""

from __future__ import annotations

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_NAME, is_float
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim, maximum, scope_from
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.view import dynamic_slice, reshape
from ait_mlir.frontend.tensor import Tensor, normalize_dtype

LONGEST = 1 << 22
"""The most numbers of a range: the model stores all numbers that any run may need."""


class arange(Operator):
    """start, start + step, ... up to `end`, which is excluded: one dim. A single argument is `end`, with start 0.

    `start` and `end` may be dims or values of `ops.size`; `step` is a number other than 0.
    """

    def __init__(self, dtype: str = "int64"):
        super().__init__()
        self.dtype = normalize_dtype(dtype)

    def __call__(self, start: DimLike, end: DimLike | None = None, step: int = 1) -> Tensor:
        self.begin()
        if step == 0:
            raise self.fail("the step is 0, expected another number")
        low, high = (as_dim(0), as_dim(start)) if end is None else (as_dim(start), as_dim(end))
        span = high - low if step > 0 else low - high
        count = maximum((span + (abs(step) - 1)) // abs(step), 0)
        places = self.numbers(as_dim(0), count)
        y = places if step == 1 else places * step
        return self.finish(y if low == 0 else y + self.number(low))

    def number(self, value: IntVar) -> Tensor:
        """A dim as a tensor of rank 0."""
        if (known := value.expr.as_int()) is not None:
            return Tensor(shape=[], dtype=self.dtype, value=known)
        return reshape()(self.numbers(value, as_dim(1)), [])

    def numbers(self, start: IntVar, count: IntVar) -> Tensor:
        """start, start + 1, ...: a slice of a constant that is long enough for every run."""
        low, end = scope_from(start.symbols).bounds(start.expr)[0], start + count
        length = end.upper_bound() - low
        if length > LONGEST:
            raise self.fail(
                f"numbers from {start} to {end} are needed, up to {length} of them; "
                f"give the dims a maximum that keeps them at {LONGEST}"
            )
        element = BY_NAME[self.dtype].ir
        values = [float(n) if is_float(element) else n for n in range(low, low + length)]
        whole = Tensor.of(ConstantOp(values, TensorType.get([length], element)).output, {})
        return dynamic_slice()(whole, [start - low], [end - low])
