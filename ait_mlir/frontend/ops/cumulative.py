"""Operators that combine the elements up to each one along a dim: cumsum, cumprod, cummax, cummin, logcumsumexp."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from ait_mlir.dialects.ait import cumulative as ait
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor


class _Cumulative(Operator):
    kind: ClassVar[str]

    def __init__(self, dim: int, exclusive: bool = False, reverse: bool = False):
        super().__init__()
        self.dim, self.flags = dim, {"exclusive": exclusive, "reverse": reverse}

    def __call__(self, x: Tensor) -> Tensor:
        self.begin(x)
        flags: dict[str, Attribute] = {name: UnitAttr() for name, given in self.flags.items() if given}
        dim = IntegerAttr(self.axis(x, self.dim), i64)
        properties: dict[str, Attribute] = {"kind": StringAttr(self.kind), "dim": dim, **flags}
        return self.finish(self.emit_one(ait.CumulativeOp, [x], properties))


class cumsum(_Cumulative):
    """The sum of the elements up to and with each one along `dim`, in the input's type.

    `exclusive` leaves the element itself out; `reverse` starts from the last.
    """

    kind = "sum"


class cumprod(_Cumulative):
    """The product of the elements up to and with each one along `dim`; the arguments are those of `cumsum`."""

    kind = "prod"


class cummax(_Cumulative):
    """The largest of the elements up to and with each one along `dim`, NaN from the first NaN on; the arguments are
    those of `cumsum`."""

    kind = "max"


class cummin(_Cumulative):
    """The smallest of the elements up to and with each one along `dim`, NaN from the first NaN on; the arguments are
    those of `cumsum`."""

    kind = "min"


class logcumsumexp(_Cumulative):
    """log(sum(exp(x))) over the elements up to and with each one along `dim`; the arguments are those of `cumsum`."""

    kind = "logsumexp"
