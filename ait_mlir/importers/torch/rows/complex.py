"""Operations on complex numbers, which are pairs of real tensors.

A complex tensor of the program is a `Pair`, which has no type in `ait`. Operations that move elements are applied to
both parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions.contraction import product
from ait_mlir.compositions.fourier import sum_of
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.rows.complex_functions import FUNCTIONS, Numbers
from ait_mlir.importers.torch.rows.fourier import fourier
from ait_mlir.importers.torch.rows.pairs import (
    Interleaved,
    Pair,
    PartCall,
    imaginary,
    pair_of,
    part_element,
    result_dims,
    spread_pair,
)
from ait_mlir.importers.torch.rows.scatter import slice_scatter

ONE = const(1)


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
    """Apply the row to the real parts and to the imaginary parts of the arguments."""
    if isinstance(seen := c["self"], Interleaved):
        return seen.pair.real if c["index"] == 0 else imaginary(c, seen.pair)
    pairs = [a for a in _leaves(c) if isinstance(a, Pair)]
    arguments = dict(c.arguments)
    if "tensors" in arguments:  # some of them may be real
        arguments["tensors"] = [a if isinstance(a, Pair) else _as_pair(c, a) for a in c["tensors"]]

    def of(take: Callable[[Pair], SSAValue]) -> Any:
        def put(a: Any) -> Any:
            if isinstance(a, list):
                return [put(each) for each in cast("list[Any]", a)]
            return take(a) if isinstance(a, Pair) else a

        made = row(PartCall(c.node, {k: put(a) for k, a in arguments.items()}, c.w, c.table))
        return [c.w.full(m) for m in made] if isinstance(made, list | tuple) else c.w.full(cast(Value, made))

    real = of(lambda p: p.real)
    imag = None if all(p.imag is None for p in pairs) else of(lambda p: imaginary(c, p))
    if isinstance(real, list):
        reals = cast("list[SSAValue]", real)
        return [Pair(r, None if imag is None else imag[n]) for n, r in enumerate(reals)]
    return Pair(real, imag)


def _as_pair(c: Call, value: Value) -> Pair:
    """A real tensor as a complex one."""
    return Pair(c.w.cast(c.w.full(value), part_element(c)))


def view_as_real(c: Call) -> Any:
    """The real and imaginary parts, stacked along a last dim of 2. If every use reads one part, no tensor is made: an
    `Interleaved` holds the parts.
    """
    pair: Pair = c["self"]
    rank = len(result_dims(c))
    picks = [u for u in c.node.users if str(u.target) == "aten.select.int" and u.args[1] in (-1, rank - 1)]
    if len(picks) == len(c.node.users):
        return Interleaved(pair)
    parts = [c.w.reshape(p, (*tensor_type(p).dims, ONE)) for p in (pair.real, imaginary(c, pair))]
    return c.w.concat(parts, rank - 1)


def view_as_complex(c: Call) -> Pair:
    x = c.tensor("self")
    *dims, _ = tensor_type(x).dims
    return Pair(*(c.w.reshape(c.w.slice(x, len(dims), const(at), ONE), dims) for at in range(2)))


def from_parts(c: Call) -> Pair:
    return spread_pair(c, Pair(c.w.full(c.value("real")), c.w.full(c.value("imag"))))


def polar(c: Call) -> Pair:
    """abs * (cos(angle) + i sin(angle))"""
    size, angle = c.natural("abs"), c.natural("angle")
    parts = (c.w.mul(size, c.w.op(op, angle)) for op in (ait.CosOp, ait.SinOp))
    return spread_pair(c, Pair(*parts))


def converted(c: Call) -> Any:
    """A conversion from or to a complex type, or between complex types; to a real type it takes the real part."""
    pair, element = pair_of(c, "self"), part_element(c)
    real, imag = c.w.cast(pair.real, element), None if pair.imag is None else c.w.cast(pair.imag, element)
    return spread_pair(c, Pair(real, imag)) if c.node.meta["val"].is_complex() else real


def conjugate(c: Call) -> Pair:
    pair: Pair = c["self"]
    return replace(pair, imag=None if pair.imag is None else c.w.neg(pair.imag))


def magnitude(c: Call) -> Value:
    pair: Pair = c["self"]
    if pair.imag is None:
        return c.w.op(ait.AbsOp, pair.real)
    squares = [c.w.mul(p, p) for p in (pair.real, pair.imag)]
    return c.w.op(ait.SqrtOp, c.w.add(*squares))


def angle(c: Call) -> Value:
    """The angle of each number from the positive real axis, from -pi to pi."""
    if isinstance(pair := c["self"], Pair):
        return c.w.op(ait.Atan2Op, imaginary(c, pair), pair.real)
    x = c.w.cast(c.tensor("self"), c.element)
    zero, half_turn = (c.w.scalar(number, c.element) for number in (0.0, math.pi))
    is_nan = c.w.compare("ne", x, x)
    is_negative = c.w.compare("lt", x, zero)
    return c.w.where(is_negative, half_turn, c.w.where(is_nan, x, zero))


def filled(number: float) -> Callable[[Call], Pair]:
    """A row for a tensor filled with `number`."""
    return lambda c: Pair(c.w.expand(c.w.scalar(number, part_element(c)), result_dims(c)))


def copied(c: Call) -> Pair:
    """The values of `src`, broadcast to the shape of `self`."""
    pair = pair_of(c, "src")
    element = part_element(c)
    return spread_pair(c, Pair(*(None if p is None else c.w.cast(p, element) for p in (pair.real, pair.imag))))  # type: ignore


def written_slice(c: Call) -> Pair:
    """`self` with `src` in a slice of it, part by part."""
    own, written = pair_of(c, "self"), pair_of(c, "src")

    def part(of: Callable[[Pair], SSAValue]) -> SSAValue:
        arguments = {**c.arguments, "self": of(own), "src": of(written)}
        return c.w.full(slice_scatter(PartCall(c.node, arguments, c.w, c.table)))

    real = part(lambda p: p.real)
    if own.imag is None and written.imag is None:
        return Pair(real)
    return Pair(real, part(lambda p: imaginary(c, p)))


# ** arithmetic **


def add(subtract: bool) -> Callable[[Call], Pair]:
    def row(c: Call) -> Pair:
        a, b = pair_of(c, "self"), pair_of(c, "other")
        if c["alpha"] not in (None, 1):
            b = Numbers(c).mul(pair_of(c, "alpha"), b)
        real = sum_of(c.w, a.real, b.real, subtract)
        assert real is not None
        return spread_pair(c, Pair(real, sum_of(c.w, a.imag, b.imag, subtract)))

    return row


def matmul(a: str, b: str, bias: str | None = None) -> Callable[[Call], Pair]:
    """A row for matrix products, with a real product for each pair of parts. With a bias, `b` is transposed, as in
    `linear`.
    """

    def row(c: Call) -> Pair:
        x, y = pair_of(c, a), pair_of(c, b)
        # a vector is a row on the left and a column on the right
        left, right = (tensor_type(p.real).rank == 1 for p in (x, y))

        def matrix(part: SSAValue, on_the_left: bool) -> SSAValue:
            dims = tensor_type(part).dims
            if len(dims) == 1:
                return c.w.reshape(part, (ONE, *dims) if on_the_left else (*dims, ONE))
            return part if on_the_left or bias is None else c.w.permute(part, [1, 0])

        def times(u: SSAValue | None, v: SSAValue | None) -> SSAValue | None:
            if u is None or v is None:
                return None
            made = product(c.w, matrix(u, True), matrix(v, False))
            return c.w.reshape(made, result_dims(c)) if left or right else made

        real = sum_of(c.w, times(x.real, y.real), times(x.imag, y.imag), subtract=True)
        assert real is not None
        made = Pair(real, sum_of(c.w, times(x.real, y.imag), times(x.imag, y.real)))
        if bias is None or c[bias] is None:
            return made
        added = pair_of(c, bias)
        with_bias = sum_of(c.w, made.real, added.real)
        assert with_bias is not None
        return spread_pair(c, Pair(with_bias, sum_of(c.w, made.imag, added.imag)))

    return row


_MOVING = frozenset(
    f"aten.{name}"
    for name in (
        *("alias.default", "broadcast_to.default", "cat.default", "chunk.default", "clone.default", "concat.default"),
        *("contiguous.default", "cumsum.default", "detach.default", "diag_embed.default", "diagonal.default"),
        *("expand.default", "flatten.using_ints", "flip.default", "gather.default", "index.Tensor"),
        *("index_select.default", "lift_fresh_copy.default", "mean.default", "mean.dim", "movedim.int"),
        *("movedim.intlist", "mT.default", "narrow.default", "neg.default", "numpy_T.default", "permute.default"),
        *("repeat.default", "repeat_interleave.self_int", "reshape.default", "roll.default", "select.int"),
        *("slice.Tensor", "split.Tensor", "split_with_sizes.default", "squeeze.default", "squeeze.dim"),
        *("squeeze.dims", "stack.default", "sum.default", "sum.dim_IntList", "t.default", "tile.default"),
        *("transpose.int", "tril.default", "triu.default", "unbind.int", "unflatten.int", "unfold.default"),
        *("unsqueeze.default", "view.default", "view_as.default", "_unsafe_view.default"),
    )
)
"""Operations that are linear and whose coefficients are real: the same on both parts."""

_COMPLEX: dict[str, Callable[[Call], Any]] = {
    **FUNCTIONS,
    "aten._assert_tensor_metadata.default": lambda c: None,
    "aten._conj.default": conjugate,
    "aten._fft_c2c.default": fourier(True),
    "aten._fft_c2r.default": fourier(False, real=True),
    "aten._fft_r2c.default": fourier(True, real=True),
    "aten._to_copy.default": converted,
    "aten.abs.default": magnitude,
    "aten.add.Tensor": add(subtract=False),
    "aten.angle.default": angle,
    "aten.bmm.default": matmul("self", "mat2"),
    "aten.complex.default": from_parts,
    "aten.conj.default": conjugate,
    "aten.conj_physical.default": conjugate,
    "aten.copy.default": copied,
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
    "aten.imag.default": lambda c: imaginary(c, c["self"]),
    "aten.linear.default": matmul("input", "weight", "bias"),
    "aten.matmul.default": matmul("self", "other"),
    "aten.mm.default": matmul("self", "mat2"),
    "aten.mv.default": matmul("self", "vec"),
    "aten.polar.default": polar,
    "aten.real.default": lambda c: c["self"].real,
    "aten.resolve_conj.default": lambda c: c["self"],
    "aten.slice_scatter.default": written_slice,
    "aten.sub.Tensor": add(subtract=True),
    "aten.to.device": converted,
    "aten.to.dtype": converted,
    "aten.to.dtype_layout": converted,
    "aten.view_as_complex.default": view_as_complex,
    "aten.view_as_real.default": view_as_real,
    **{f"aten.{name}.default": filled(1.0) for name in ("ones", "ones_like", "new_ones")},
    **{f"aten.{name}.default": filled(0.0) for name in ("zeros", "zeros_like", "new_zeros")},
}


def _of_real(c: Call) -> Value:
    return c.value("self")


_OF_REAL = ("_conj", "conj", "conj_physical", "real", "resolve_conj")
ROWS: dict[str, Row] = {**_COMPLEX, **{f"aten.{name}.default": _of_real for name in _OF_REAL}}
"""Rows of calls on real numbers; those of other families take the place of some."""
