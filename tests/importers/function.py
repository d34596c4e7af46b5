"""Functions as models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


class Function(nn.Module):
    """A function of tensors as a model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class FunctionOfX(Function):
    """A function of one tensor, which `dynamic_shapes` names directly."""

    def forward(self, x: Any) -> Any:
        return self.function(x)
