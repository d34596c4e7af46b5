"""Fourier transforms as products with matrices of cosines and sines, n x n for a length of n: for short lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, floordiv
from ait_mlir.importers.torch.call import Call, NotSupported
from ait_mlir.importers.torch.known import Affine
from ait_mlir.importers.torch.rows.common import number
from ait_mlir.importers.torch.rows.contraction import product_of
from ait_mlir.importers.torch.rows.pairs import Pair, part_element, result_dims, sum_of

ONE = const(1)
LONGEST = 4096
"""The longest transform."""


def _waves(c: Call, n: Expr, rows: Expr, columns: Expr, element: Attribute) -> list[SSAValue]:
    """cos and sin of 2 pi j k / n, of `rows` x `columns`."""
    if c.w.scope.bounds(n)[1] > LONGEST:
        raise NotSupported(f"Fourier transforms are supported up to {LONGEST} elements; the dim may be {n}")
    length, height, width = n.as_int(), rows.as_int(), columns.as_int()
    if length is not None and height is not None and width is not None:
        turns = np.outer(np.arange(height), np.arange(width)) % length * (2 * math.pi / length)
        dtype = np.float64 if element == f64 else np.float32
        name = f"constant.fourier_{length}_{height}_{width}_{np.dtype(dtype).name}"
        return [
            c.w.stored(f"{name}_{word}", wave(turns).astype(dtype), element)
            for word, wave in (("cos", np.cos), ("sin", np.sin))
        ]
    j, k = c.w.full(Affine((rows, ONE), (ONE, ONE), const(0))), c.w.full(Affine((columns,), (ONE,), const(0)))
    turns = c.w.cast(c.w.op(ait.RemOp, c.w.op(ait.MulOp, j, k), number(c, n, i64)), element)
    unit = c.w.op(ait.DivOp, c.w.scalar(2 * math.pi, element), number(c, n, element))
    return [c.w.op(op, c.w.op(ait.MulOp, turns, unit)) for op in (ait.CosOp, ait.SinOp)]


def _scaled(c: Call, x: SSAValue, n: Expr, power: float) -> SSAValue:
    """x * n ** power"""
    if power == 0:
        return x
    element = tensor_type(x).element_type
    if (length := n.as_int()) is not None:
        return c.w.op(ait.MulOp, x, c.w.scalar(float(max(length, 1)) ** power, element))
    size = number(c, n, element)
    return c.w.op(ait.DivOp, x, size) if power == -1 else c.w.op(ait.MulOp, x, c.w.op(ait.RsqrtOp, size))


def _product(c: Call, x: SSAValue | None, axis: int, matrix: SSAValue) -> SSAValue | None:
    """x @ matrix over an axis of x."""
    if x is None:
        return None
    rank = tensor_type(x).rank
    order = [*(a for a in range(rank) if a != axis), axis]
    turned = c.w.permute(x, order)
    lone = rank == 1
    y = product_of(c, c.w.reshape(turned, (ONE, *tensor_type(turned).dims)) if lone else turned, matrix)
    y = c.w.reshape(y, tensor_type(y).dims[1:]) if lone else y
    return c.w.permute(y, [order.index(a) for a in range(rank)])


def _fitting(c: Call, pair: Pair, axis: int, most: Expr) -> tuple[Pair, Expr]:
    """A pair with at most so many elements along an axis, and their number; what is missing counts as 0."""
    size = tensor_type(pair.real).dims[axis]
    if c.w.scope.le(size, most):
        return pair, size
    return Pair(*(None if p is None else c.w.slice(p, axis, const(0), most) for p in (pair.real, pair.imag))), most  # type: ignore


def _transformed(c: Call, pair: Pair, axis: int, n: Expr, columns: Expr, forward: bool, power: float) -> Pair:
    """The transform along an axis, of length n, or its first columns."""
    pair, rows = _fitting(c, pair, axis, n)
    cos, sin = _waves(c, n, rows, columns, tensor_type(pair.real).element_type)
    real, crossed = _product(c, pair.real, axis, cos), _product(c, pair.imag, axis, sin)
    imag, turned = _product(c, pair.imag, axis, cos), _product(c, pair.real, axis, sin)
    found = (sum_of(c, real, crossed, subtract=not forward), sum_of(c, imag, turned, subtract=forward))
    return Pair(*(None if f is None else _scaled(c, f, n, power) for f in found))  # type: ignore


def _weights(c: Call, n: Expr, rows: Expr, element: Attribute) -> SSAValue:
    """The factors of the coefficients of a real transform of length n: 2, but 1 for the first and the middle one."""
    length, height = n.as_int(), rows.as_int()
    if length is not None and height is not None:
        return c.w.constant([1.0 if k in (0, length / 2) else 2.0 for k in range(height)], (rows, ONE), element)
    k = c.w.full(Affine((rows, ONE), (ONE, ONE), const(0)))
    found = c.w.scalar(2.0, element)
    for place, at in ((k, number(c, 0, i64)), (c.w.op(ait.AddOp, k, k), number(c, n, i64))):
        is_lone = c.w.op(ait.CompareOp, place, at, properties={"predicate": "eq"})
        found = c.w.op(ait.WhereOp, is_lone, c.w.scalar(1.0, element), found)
    return found


def _to_real(c: Call, pair: Pair, axis: int, n: Expr, power: float) -> SSAValue:
    """The real inverse transform of length n along an axis, from the first half of the coefficients."""
    pair, rows = _fitting(c, pair, axis, floordiv(n, 2) + 1)
    element = tensor_type(pair.real).element_type
    cos, sin = _waves(c, n, rows, n, element)
    column = _weights(c, n, rows, element)
    cos, sin = (c.w.op(ait.MulOp, wave, column) for wave in (cos, sin))
    found = sum_of(c, _product(c, pair.real, axis, cos), _product(c, pair.imag, axis, sin), subtract=True)
    assert found is not None
    return _scaled(c, found, n, power)


_POWERS: dict[str | int | None, tuple[float, float]] = {
    None: (0, -1), "backward": (0, -1), "ortho": (-0.5, -0.5), "forward": (-1, 0),
    0: (0, 0), 1: (-0.5, -0.5), 2: (-1, -1),
}  # fmt: skip
"""The power of n by which a transform and its inverse are scaled, by `norm` or the number of a normalization."""


def fourier(forward: bool, real: bool = False) -> Callable[[Call], Any]:
    """A transform over some dims, or its inverse; `real`: the last of them is from or to real numbers."""

    def row(c: Call) -> Any:
        result = result_dims(c)
        rank = len(result)
        given = c.arguments["dim"]
        if given is None:
            given = range(rank if c["s"] is None else len(c["s"]))
            given = [a - len(given) for a in given]
        axes: list[int] = [a % rank for a in ([given] if isinstance(given, int) else given)]
        way = bool(c["forward"]) if "forward" in c.arguments else forward
        power = _POWERS[c["normalization"] if "normalization" in c.arguments else c["norm"]][not way]
        pair = c["self"] if isinstance(c["self"], Pair) else Pair(c.w.cast(c.tensor("self"), part_element(c)))
        for axis in axes[:-1] if real and not forward else reversed(axes):
            n = result[axis]
            if real and axis == axes[-1] and c.arguments.get("onesided", True):
                n = _length(c, pair, axis)
            pair = _transformed(c, pair, axis, n, result[axis], way, power)
        return _to_real(c, pair, axes[-1], result[axes[-1]], power) if real and not forward else pair

    return row


def _length(c: Call, pair: Pair, axis: int) -> Expr:
    """The length of a transform of real numbers; its result has the first half of the coefficients."""
    given = c.arguments.get("n")
    if given is None and c.arguments.get("s") is not None:
        given = c["s"][-1]
    if given is None:
        return tensor_type(pair.real).dims[axis]
    return given if isinstance(given, Expr) else const(given)
