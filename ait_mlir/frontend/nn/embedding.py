"""`Embedding`: rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.tensor import Tensor


class Embedding(Module):
    """Ids of any shape, int32 or int64, to rows of the table `weight`, whose shape is [rows, size]."""

    def __init__(self, shape: Sequence[int], dtype: str = "float16"):
        self.weight = Parameter(shape, dtype)

    def tensor(self) -> Tensor:
        return self.weight.tensor()

    def forward(self, ids: Tensor) -> Tensor:
        return ops.embedding()(self.weight.tensor(), ids)
