"""Tensors without operands, and rows of tables: arange, fills, embeddings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import INTEGERS, Affine, Mask, Spread, Value, spread
from ait_mlir.building.writer import LONGEST_LITERAL
from ait_mlir.compositions import ranges
from ait_mlir.compositions.index import rows_of
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dims import DimError, Expr, const, floordiv, maximum
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.size_floats import size_float
from ait_mlir.rewrites.engine.numbers import stored

ONE, ZERO = const(1), const(0)


def arange(c: Call) -> Value:
    """start, start + step, ...: integers are a formula, which is not written if only masks and positions use it."""
    start, step = c.arguments.get("start", 0), c.arguments.get("step", 1)
    if not is_float(c.element):  # PyTorch truncates both before it counts
        start, step = (int(n) if isinstance(n, float | bool) else n for n in (start, step))
    if not isinstance(start, int | Expr) or not isinstance(step, int | Expr):
        return _in_fractions(c, start, step)
    return ranges.arange(c.w, as_expr(start), as_expr(step), c.dims[0], c.element)


def _in_fractions(c: Call, start: Any, step: Any) -> Value:
    """start + i * step for numbers that are not integers, computed in at least f32, like PyTorch."""
    element = f64 if c.element == f64 or not is_float(c.element) else f32
    count = c.w.cast(c.w.natural(Affine(c.dims, (ONE,), ZERO)), element)
    scaled = c.w.mul(count, _real(c, step, element))
    return spread(c.w.cast(c.w.add(scaled, _real(c, start, element)), c.element), c.dims)


def _real(c: Call, value: Any, element: Attribute) -> SSAValue:
    """A scalar argument as a value of type `element`: a number, a dim expression, or a float that is computed from
    dims.
    """
    if isinstance(value, int | float | Expr):
        return c.w.number(value, element)
    return c.w.cast(size_float(c.w, value, c.table), element)


def linspace(c: Call) -> Value:
    """`steps` numbers from `start` to `end`, counted from the nearer end. For an integer result, PyTorch truncates both
    ends, computes in f64 and truncates again.
    """
    n, element = c.dims[0], f64 if c.element == f64 or not is_float(c.element) else f32
    start, end = (_end(c, name, element) for name in ("start", "end"))
    last = maximum(n - 1, 1)
    step = c.w.div(c.w.sub(end, start), c.w.number(last, element))
    above, below = (
        c.w.cast(c.w.natural(Affine(c.dims, (const(way),), first)), element) for way, first in ((1, ZERO), (-1, n - 1))
    )
    up, down = c.w.add(start, c.w.mul(step, above)), c.w.sub(end, c.w.mul(step, below))
    is_first = c.w.natural(Mask(c.dims, (Affine(c.dims, (const(-1),), maximum(floordiv(n, 2), 1) - 1),)))
    return spread(c.w.cast(c.w.where(is_first, up, down), c.element), c.dims)


def _end(c: Call, name: str, element: Attribute) -> SSAValue:
    """An end of a range, a number or a tensor, rounded to the result's type."""
    value = c.arguments[name]
    if isinstance(value, int | float) and not is_float(c.element):
        return c.w.number(int(value), element)
    is_tensor = isinstance(value, SSAValue | Affine | Mask | Spread)
    found = c.w.cast(c.natural(name), element) if is_tensor else _real(c, value, element)
    return found if is_float(c.element) else c.w.cast(c.w.cast(found, c.element), element)


def filled(value_of: Callable[[Call], Any]) -> Row:
    """A row for a tensor filled with one number."""

    def row(c: Call) -> Value:
        value = value_of(c)
        if isinstance(value, SSAValue):  # a number that only the run knows
            return spread(c.w.cast(cast(SSAValue, value), c.element), c.dims)
        if c.element == i1:
            return Mask(c.dims) if value else Mask(c.dims, (Affine.filled(c.dims, -1),))
        if c.element in INTEGERS:
            with suppress(DimError):
                return Affine.filled(c.dims, as_expr(value if isinstance(value, Expr) else int(value)), c.element)
        if isinstance(value, Expr):
            return spread(c.w.cast(c.w.natural(Affine.filled((), value)), c.element), c.dims)
        if isinstance(value, torch.SymFloat):
            return spread(c.w.cast(size_float(c.w, value, c.table), c.element), c.dims)
        number = stored(float(value), c.element) if is_float(c.element) else int(value)
        return spread(c.w.scalar(number, c.element), c.dims)

    return row


def triangle(lower: bool) -> Row:
    """A row for the indices of the elements on one side of a diagonal, row by row."""

    def row(c: Call) -> Value:
        rows, columns = (c.size(name).as_int() for name in ("row", "col"))
        if rows is None or columns is None:
            raise NotSupported("the places of a triangle are supported for sizes that are known")
        places = (np.tril_indices if lower else np.triu_indices)(rows, c["offset"], columns)
        found = np.stack(places).astype(np.int64 if c.element == i64 else np.int32)
        if found.size == 0:
            return c.w.expand(c.w.scalar(0, c.element), c.dims)
        if found.size > LONGEST_LITERAL:
            return c.w.store(f"constant.{c.node.name}", found, c.element)
        return c.w.constant([int(n) for n in found.flat], c.dims, c.element)

    return row


def embedding(c: Call) -> Value:
    """Rows of a table by index; for consecutive indices, a slice of the table."""
    return rows_of(c.w, c.tensor("weight"), c.value("indices"))


def copied(c: Call) -> Value:
    """The values of another tensor, in the shape and element type of this one."""
    return c.w.cast(c.w.full(spread(c.natural("src"), c.dims)), c.element)


ROWS: dict[str, Row] = {
    "aten.arange.default aten.arange.start aten.arange.start_step": arange,
    **{f"aten.linspace.{kind}": linspace for kind in ("default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")},
    "aten.full.default aten.full_like.default aten.new_full.default": filled(lambda c: c.arguments["fill_value"]),
    "aten.scalar_tensor.default": filled(lambda c: c.arguments["s"]),
    "aten.ones.default aten.ones_like.default aten.new_ones.default": filled(lambda c: 1),
    "aten.zeros.default aten.zeros_like.default aten.new_zeros.default": filled(lambda c: 0),
    # undefined numbers: the model overwrites them
    **{
        f"aten.{name}": filled(lambda c: 0)
        for name in (
            *("empty.memory_format", "empty_like.default", "empty_permuted.default", "empty_strided.default"),
            *("new_empty.default", "new_empty_strided.default"),
        )
    },
    "aten.tril_indices.default": triangle(lower=True),
    "aten.triu_indices.default": triangle(lower=False),
    "aten.embedding.default": embedding,
    "aten.copy.default": copied,
}
