"""Operators that give each element what has come together up to it: cumsum."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait import cumulative as ait
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor


class cumsum(Operator):
    """The sum of the elements up to and with each one along `dim`, in the input's type.

    `exclusive` leaves the element itself out; `reverse` starts from the last.
    """

    def __init__(self, dim: int, exclusive: bool = False, reverse: bool = False):
        super().__init__()
        self.dim, self.flags = dim, {"exclusive": exclusive, "reverse": reverse}

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        flags: dict[str, Attribute] = {name: UnitAttr() for name, given in self.flags.items() if given}
        return self.finish(self.emit_one(ait.CumsumOp, [x], {"dim": IntegerAttr(self.axis(x, self.dim), i64), **flags}))
