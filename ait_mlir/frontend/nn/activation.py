"""Activations as layers."""

from __future__ import annotations

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor

__all__ = ["GELU"]

FUNCTIONS = {"none": FuncEnum.GELU, "tanh": FuncEnum.FASTGELU}


class GELU(Module):
    """x * Phi(x), Phi the distribution function of a normal variable; with `approximate` "tanh" in the tanh form."""

    def __init__(self, approximate: str = "none"):
        if approximate not in FUNCTIONS:
            raise BuildError(f'GELU: approximate is "none" or "tanh", found "{approximate}"')
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return elementwise(FUNCTIONS[self.approximate])(x)
