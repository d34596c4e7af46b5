"""Complex numbers as pairs of real tensors, and Fourier transforms as products with matrices.

A complex tensor of the program is a `Pair`, which has no type in `ait`. Operations that move elements are applied to
both parts. A transform of length n multiplies by the n x n matrices of cosines and sines, so it is for short lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.known import Affine, Value
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.rows.common import number
from ait_mlir.importers.torch.rows.contraction import product_of

ONE = const(1)
LONGEST = 4096
"""The longest transform."""


@dataclass(frozen=True)
class Pair:
    """A complex tensor; without an imaginary part this is 0."""

    real: SSAValue
    imag: SSAValue | None = None


@dataclass(frozen=True)
class Interleaved:
    """`view_as_real` of a complex tensor, of which only parts are read."""

    pair: Pair


class PartCall(Call):
    """A call on the real or the imaginary parts of its arguments."""

    def type_of(self, tensor: Any) -> TensorType:
        return TensorType.get(self.table.shape(tensor.shape), _part_type(tensor))


def _part_type(tensor: Any) -> Attribute:
    if tensor.dtype not in (torch.complex64, torch.complex128):
        raise NotSupported(f"tensors of {tensor.dtype} are not supported beside complex ones; use complex64")
    return f64 if tensor.dtype == torch.complex128 else f32


def translated(c: Call, name: str, row: Row) -> Any:
    """The result of a row; for complex numbers, the result of a row of this file."""
    values = torch.utils._pytree.tree_leaves(c.node.meta.get("val"))
    makes = any(isinstance(v, torch.Tensor) and v.is_complex() for v in values)
    if not makes and not any(isinstance(a, Pair | Interleaved) for a in _leaves(c)):
        return row(c)
    if name in _MOVING:
        return _by_parts(c, row)
    if (found := _COMPLEX.get(name)) is None:
        raise NotSupported("it is not supported on complex numbers; compute with torch.view_as_real")
    return found(c)


def _leaves(c: Call) -> list[Any]:
    found: list[Any] = []
    for a in c.arguments.values():
        found += cast("list[Any]", a) if isinstance(a, list) else [a]
    return found


# ** parts **


def _by_parts(c: Call, row: Row) -> Any:
    """The row on real parts, then on imaginary ones."""
    if isinstance(seen := c["self"], Interleaved):
        return seen.pair.real if c["index"] == 0 else _imaginary(c, seen.pair)
    pairs = [a for a in _leaves(c) if isinstance(a, Pair)]

    def of(take: Callable[[Pair], SSAValue]) -> Any:
        def put(a: Any) -> Any:
            if isinstance(a, list):
                return [put(each) for each in cast("list[Any]", a)]
            return take(a) if isinstance(a, Pair) else a

        made = row(PartCall(c.node, {k: put(a) for k, a in c.arguments.items()}, c.w, c.table))
        return [c.w.full(m) for m in made] if isinstance(made, list | tuple) else c.w.full(cast(Value, made))

    real = of(lambda p: p.real)
    imag = None if all(p.imag is None for p in pairs) else of(lambda p: _imaginary(c, p))
    if isinstance(real, list):
        reals = cast("list[SSAValue]", real)
        return [Pair(r, None if imag is None else imag[n]) for n, r in enumerate(reals)]
    return Pair(real, imag)


def _imaginary(c: Call, pair: Pair) -> SSAValue:
    t = tensor_type(pair.real)
    return c.w.expand(c.w.scalar(0.0, t.element_type), t.dims) if pair.imag is None else pair.imag


def _dims(c: Call) -> Shape:
    return c.table.shape(c.node.meta["val"].shape)


def _element(c: Call) -> Attribute:
    """The type of the parts of the result, which may be real."""
    t = c.node.meta["val"]
    return _part_type(t) if t.is_complex() else c.element


def _pair(c: Call, name: str) -> Pair:
    """An argument as a complex tensor or number whose parts broadcast to the result."""
    found, element = c.arguments[name], _element(c)
    if isinstance(found, Pair):
        return found
    if isinstance(found, complex):
        return Pair(c.w.scalar(found.real, element), c.w.scalar(found.imag, element))
    if isinstance(found, bool | int | float | Expr):
        return Pair(number(c, found, element))
    return Pair(c.w.cast(c.natural(name), element))


def _spread(c: Call, pair: Pair) -> Pair:
    dims = _dims(c)
    return Pair(c.w.expand(pair.real, dims), None if pair.imag is None else c.w.expand(pair.imag, dims))


def view_as_real(c: Call) -> Any:
    """The parts side by side, as a last dim of 2; only one of them where only that is read."""
    pair: Pair = c["self"]
    rank = len(_dims(c))
    picks = [u for u in c.node.users if str(u.target) == "aten.select.int" and u.args[1] in (-1, rank - 1)]
    if len(picks) == len(c.node.users):
        return Interleaved(pair)
    parts = [c.w.reshape(p, (*tensor_type(p).dims, ONE)) for p in (pair.real, _imaginary(c, pair))]
    return c.w.concat(parts, rank - 1)


def view_as_complex(c: Call) -> Pair:
    x = c.tensor("self")
    *dims, _ = tensor_type(x).dims
    return Pair(*(c.w.reshape(c.w.slice(x, len(dims), const(at), ONE), dims) for at in range(2)))


def from_parts(c: Call) -> Pair:
    return _spread(c, Pair(c.w.full(c.value("real")), c.w.full(c.value("imag"))))


def polar(c: Call) -> Pair:
    """abs * (cos(angle) + i sin(angle))"""
    size, angle = c.natural("abs"), c.natural("angle")
    parts = (c.w.op(ait.MulOp, size, c.w.op(op, angle)) for op in (ait.CosOp, ait.SinOp))
    return _spread(c, Pair(*parts))


def converted(c: Call) -> Any:
    """Real numbers as complex ones; complex numbers with parts of another type, or their real part alone."""
    pair, element = _pair(c, "self"), _element(c)
    real, imag = c.w.cast(pair.real, element), None if pair.imag is None else c.w.cast(pair.imag, element)
    return _spread(c, Pair(real, imag)) if c.node.meta["val"].is_complex() else real


def conjugate(c: Call) -> Pair:
    pair: Pair = c["self"]
    return replace(pair, imag=None if pair.imag is None else c.w.op(ait.NegOp, pair.imag))


def magnitude(c: Call) -> Value:
    pair: Pair = c["self"]
    if pair.imag is None:
        return c.w.op(ait.AbsOp, pair.real)
    squares = [c.w.op(ait.MulOp, p, p) for p in (pair.real, pair.imag)]
    return c.w.op(ait.SqrtOp, c.w.op(ait.AddOp, *squares))


# ** arithmetic **


def _sum(c: Call, a: SSAValue | None, b: SSAValue | None, subtract: bool = False) -> SSAValue | None:
    """a + b or a - b, where None is 0."""
    if b is None:
        return a
    if a is None:
        return c.w.op(ait.NegOp, b) if subtract else b
    return c.w.op(ait.SubOp if subtract else ait.AddOp, a, b)


def add(subtract: bool) -> Callable[[Call], Pair]:
    def row(c: Call) -> Pair:
        if c["alpha"] not in (None, 1):
            raise NotSupported("alpha is not supported on complex numbers; multiply first")
        a, b = _pair(c, "self"), _pair(c, "other")
        real = _sum(c, a.real, b.real, subtract)
        assert real is not None
        return _spread(c, Pair(real, _sum(c, a.imag, b.imag, subtract)))

    return row


def multiply(c: Call) -> Pair:
    a, b = _pair(c, "self"), _pair(c, "other")

    def times(x: SSAValue | None, y: SSAValue | None) -> SSAValue | None:
        return None if x is None or y is None else c.w.op(ait.MulOp, x, y)

    real = _sum(c, times(a.real, b.real), times(a.imag, b.imag), subtract=True)
    assert real is not None
    return _spread(c, Pair(real, _sum(c, times(a.real, b.imag), times(a.imag, b.real))))


def divide(c: Call) -> Pair:
    a, b = _pair(c, "self"), _pair(c, "other")
    if b.imag is not None:
        raise NotSupported("division by complex numbers is not supported; multiply by the conjugate first")
    imag = None if a.imag is None else c.w.op(ait.DivOp, a.imag, b.real)
    return _spread(c, Pair(c.w.op(ait.DivOp, a.real, b.real), imag))


# ** Fourier transforms **


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
    found = (_sum(c, real, crossed, subtract=not forward), _sum(c, imag, turned, subtract=forward))
    return Pair(*(None if f is None else _scaled(c, f, n, power) for f in found))  # type: ignore


def _to_real(c: Call, pair: Pair, axis: int, n: Expr, power: float) -> SSAValue:
    """The real inverse transform of length n along an axis, from the first half of the coefficients."""
    if (length := n.as_int()) is None:
        raise NotSupported("inverse real transforms are supported along dims that are numbers")
    pair, rows = _fitting(c, pair, axis, const(length // 2 + 1))
    cos, sin = _waves(c, n, rows, n, tensor_type(pair.real).element_type)
    weights = [1.0 if k == 0 or 2 * k == length else 2.0 for k in range(rows.as_int() or 0)]
    column = c.w.constant(weights, (rows, ONE), tensor_type(pair.real).element_type)
    cos, sin = (c.w.op(ait.MulOp, wave, column) for wave in (cos, sin))
    found = _sum(c, _product(c, pair.real, axis, cos), _product(c, pair.imag, axis, sin), subtract=True)
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
        result = _dims(c)
        rank = len(result)
        given = c.arguments["dim"]
        if given is None:
            given = range(rank if c["s"] is None else len(c["s"]))
            given = [a - len(given) for a in given]
        axes: list[int] = [a % rank for a in ([given] if isinstance(given, int) else given)]
        way = bool(c["forward"]) if "forward" in c.arguments else forward
        power = _POWERS[c["normalization"] if "normalization" in c.arguments else c["norm"]][not way]
        pair = c["self"] if isinstance(c["self"], Pair) else Pair(c.w.cast(c.tensor("self"), _element(c)))
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


_MOVING = frozenset(
    f"aten.{name}"
    for name in (
        *("alias.default", "cat.default", "chunk.default", "clone.default", "contiguous.default", "detach.default"),
        *("expand.default", "flatten.using_ints", "flip.default", "lift_fresh_copy.default", "movedim.int"),
        *("movedim.intlist", "neg.default", "permute.default", "repeat.default", "reshape.default", "roll.default"),
        *("select.int", "slice.Tensor", "split.Tensor", "split_with_sizes.default", "squeeze.default", "squeeze.dim"),
        *("squeeze.dims", "stack.default", "sum.default", "sum.dim_IntList", "t.default", "transpose.int"),
        *("unbind.int", "unflatten.int", "unsqueeze.default", "view.default", "_unsafe_view.default"),
    )
)
"""Operations that are linear and whose coefficients are real: the same on both parts."""

_COMPLEX: dict[str, Callable[[Call], Any]] = {
    "aten._conj.default": conjugate,
    "aten._fft_c2c.default": fourier(True),
    "aten._fft_c2r.default": fourier(False, real=True),
    "aten._fft_r2c.default": fourier(True, real=True),
    "aten._to_copy.default": converted,
    "aten.abs.default": magnitude,
    "aten.add.Tensor": add(subtract=False),
    "aten.complex.default": from_parts,
    "aten.conj.default": conjugate,
    "aten.conj_physical.default": conjugate,
    "aten.div.Tensor": divide,
    "aten.fft_fft.default": fourier(True),
    "aten.fft_fft2.default": fourier(True),
    "aten.fft_fftn.default": fourier(True),
    "aten.fft_ifft.default": fourier(False),
    "aten.fft_ifft2.default": fourier(False),
    "aten.fft_ifftn.default": fourier(False),
    "aten.fft_irfft.default": fourier(False, real=True),
    "aten.fft_irfft2.default": fourier(False, real=True),
    "aten.fft_irfftn.default": fourier(False, real=True),
    "aten.fft_rfft.default": fourier(True, real=True),
    "aten.fft_rfft2.default": fourier(True, real=True),
    "aten.fft_rfftn.default": fourier(True, real=True),
    "aten.imag.default": lambda c: _imaginary(c, c["self"]),
    "aten.mul.Tensor": multiply,
    "aten.polar.default": polar,
    "aten.real.default": lambda c: c["self"].real,
    "aten.resolve_conj.default": lambda c: c["self"],
    "aten.sub.Tensor": add(subtract=True),
    "aten.to.dtype": converted,
    "aten.view_as_complex.default": view_as_complex,
    "aten.view_as_real.default": view_as_real,
}


def _of_real(c: Call) -> Value:
    return c.value("self")


_OF_REAL = ("_conj", "conj", "conj_physical", "real", "resolve_conj")
ROWS: dict[str, Row] = {**_COMPLEX, **{f"aten.{name}.default": _of_real for name in _OF_REAL}}
"""Rows of calls on real numbers; those of other families take the place of some."""
