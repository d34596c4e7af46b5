"""Layers that change only the shape."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.frontend import ops
from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.nn.module import Module, OperatorLayer
from ait_mlir.frontend.tensor import Tensor

__all__ = ["Flatten", "Reshape", "View"]


class Reshape(Module):
    """The same elements in the shape that the call is given; one dim may be -1."""

    def forward(self, x: Tensor, shape: Sequence[DimLike]) -> Tensor:
        return ops.reshape()(x, shape)


class View(Reshape):
    """`Reshape` under its other name."""


class Flatten(OperatorLayer):
    """The dims from `start_dim` to `end_dim`, both included, as one."""

    OPERATOR = ops.flatten
