"""Fourier transforms, complex and real, over one and several dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ait_mlir.compositions.fourier import POWERS, real_inverse, transform
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.call import Call
from ait_mlir.importers.torch.rows.pairs import Pair, part_element, result_dims


def fourier(forward: bool, real: bool = False) -> Callable[[Call], Any]:
    """A row for a transform over some dims, or its inverse; with `real`, from or to real numbers along the last of
    them.
    """

    def row(c: Call) -> Any:
        result = result_dims(c)
        rank = len(result)
        given = c.arguments["dim"]
        if given is None:
            given = range(rank if c["s"] is None else len(c["s"]))
            given = [a - len(given) for a in given]
        axes: list[int] = [a % rank for a in ([given] if isinstance(given, int) else given)]
        way = bool(c["forward"]) if "forward" in c.arguments else forward
        power = POWERS[c["normalization"] if "normalization" in c.arguments else c["norm"]][not way]
        pair = c["self"] if isinstance(c["self"], Pair) else Pair(c.w.cast(c.tensor("self"), part_element(c)))
        for axis in axes[:-1] if real and not forward else reversed(axes):
            n = result[axis]
            if real and axis == axes[-1] and c.arguments.get("onesided", True):
                n = _length(c, pair, axis)
            pair = Pair(*transform(c.w, pair.real, pair.imag, axis, n, result[axis], power=power, inverse=not way))
        if not real or forward:
            return pair
        return real_inverse(c.w, pair.real, pair.imag, axes[-1], result[axes[-1]], power=power)

    return row


def _length(c: Call, pair: Pair, axis: int) -> Expr:
    """The length of a transform of real numbers; its result has the first half of the coefficients."""
    given = c.arguments.get("n")
    if given is None and c.arguments.get("s") is not None:
        given = c["s"][-1]
    if given is None:
        return tensor_type(pair.real).dims[axis]
    return given if isinstance(given, Expr) else const(given)
