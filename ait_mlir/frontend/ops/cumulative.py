"""Cumulative operators along a dim: cumsum, cumprod, cummax, cummin, logcumsumexp."""

from __future__ import annotations

from typing import ClassVar

from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


class _Cumulative(Operator):
    kind: ClassVar[str]

    def __init__(self, dim: int, exclusive: bool = False, reverse: bool = False):
        self.dim, self.flags = dim, {"exclusive": exclusive, "reverse": reverse}

    def __call__(self, x: Tensor) -> Tensor:
        properties = {"kind": self.kind, "dim": self.axis(x, self.dim), **self.flags}
        return self.finish(self.emit_one(CumulativeOp, [x], properties))


class cumsum(_Cumulative):
    """The cumulative sum along `dim`, in the input's type.

    `exclusive` leaves the element itself out; `reverse` starts from the last.
    """

    kind = "sum"


class cumprod(_Cumulative):
    """The cumulative product along `dim`; arguments as in `cumsum`."""

    kind = "prod"


class cummax(_Cumulative):
    """The cumulative maximum along `dim`, NaN from the first NaN on; arguments as in `cumsum`."""

    kind = "max"


class cummin(_Cumulative):
    """The cumulative minimum along `dim`, NaN from the first NaN on; arguments as in `cumsum`."""

    kind = "min"


class logcumsumexp(_Cumulative):
    """The cumulative log(sum(exp(x))) along `dim`; arguments as in `cumsum`."""

    kind = "logsumexp"
