"""Writing by index: parts of a tensor replaced or combined with other values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Value, dims_of, is_mask, spread
from ait_mlir.compositions.index import (
    mostly_replaced,
    padded,
    picked,
    placed,
    reduced_into,
    replaced,
    scattered,
    scattered_along,
)
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.index import GatherOp, UpdateSliceOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.rows.common import operand
from ait_mlir.importers.torch.rows.view import cut, part_start

ONE, ZERO = const(1), const(0)


# ** along one dim, at an index of the same rank **


def scatter(kind_of: Callable[[Call], str]) -> Row:
    """A row for x[i[a, b], b] = src[a, b], or for x and src combined there."""

    def row(c: Call) -> Value:
        return _along(c, kind_of(c), c.tensor("self"), c.arguments.get("src", c["value"]))

    return row


def _along(c: Call, kind: str, x: SSAValue, src: Any) -> SSAValue:
    """Scatter along `dim`; `src` is a number, or a tensor at least as large as the index."""
    if not tensor_type(x).rank:  # a scalar becomes a tensor of one element
        return c.w.reshape(_along(c, kind, c.w.reshape(x, (ONE,)), src), ())
    axis, ids = c["dim"] % tensor_type(x).rank, c.value("index")
    own = dims_of(ids) or (ONE,)
    whole, element = tensor_type(x).dims, tensor_type(x).element_type
    index = padded(c.w, c.w.full(ids), len(whole))
    if isinstance(src, bool | int | float | torch.SymFloat | Expr):
        values = operand(c, "value", element)
    else:
        for a, d in enumerate(own[: len(dims_of(src))]):
            src = cut(c, src, a, ZERO, d)
        values = c.w.natural(src)
    return scattered_along(c.w, kind, x, axis, index, values)


def _reduction(c: Call) -> str:
    kinds = {"add": "add", "multiply": "mul"}
    if (found := str(c["reduce"])) not in kinds:
        raise NotSupported(f"scatter with reduce={found!r} is not supported; use scatter_reduce")
    return kinds[found]


def reduced_by(write: Callable[[Call, str, SSAValue, Value], SSAValue], source: str) -> Row:
    """A row that combines elements of `self` with source elements of the same index; without `include_self`, only the
    latter.
    """

    def row(c: Call) -> Value:
        write_here = functools.partial(write, c)
        own = bool(c["include_self"])
        return reduced_into(c.w, str(c["reduce"]), c.tensor("self"), c.value(source), write_here, own)

    return row


# ** slices along one dim **


def _slices(c: Call, kind: str, x: SSAValue, source: Value) -> SSAValue:
    """x with the slices along `dim` at an index of one dim replaced by slices of `source`, or combined with them."""
    dims, values = tensor_type(x).dims, c.w.natural(source)
    axis = c["dim"] % max(len(dims), 1)
    index = padded(c.w, c.tensor("index"), axis + 1, len(dims) - axis - 1)
    if not dims:
        return c.w.reshape(scattered(c.w, kind, c.w.reshape(x, (ONE,)), values, [index], [0], []), ())
    return scattered(c.w, kind, x, values, [index], [axis], [a for a in range(len(dims)) if a != axis])


def index_add(c: Call) -> Value:
    source = c.tensor("source")
    if c["alpha"] not in (None, 1):
        source = c.w.mul(source, operand(c, "alpha", tensor_type(source).element_type))
    return _slices(c, "add", c.tensor("self"), source)


def index_fill(c: Call) -> Value:
    x, value, position = c.tensor("self"), operand(c, "value", c.element), c.tensor("index")
    if (places := tensor_type(position).dims) and c.dims and mostly_replaced(c.w, x, c.axis("dim"), *places):
        return replaced(c.w, x, c.axis("dim"), value, position)
    return _slices(c, "set", x, value)


def update(c: Call, axis: int, rows: SSAValue, position: SSAValue) -> Value:
    """`self` with rows along an axis replaced, either from one position on or each at its own position."""
    x = c.tensor("self")
    rows, places = c.w.cast(rows, tensor_type(x).element_type), tensor_type(position).dims
    if places and mostly_replaced(c.w, x, axis, *places):
        return replaced(c.w, x, axis, rows, position)
    return c.w.put(UpdateSliceOp(x, rows, c.w.cast(position, i64), axis))


def index_copy(c: Call) -> Value:
    """Rows replaced at the positions in a tensor."""
    position = c.tensor("index")
    if tensor_type(position).rank == 0:
        position = c.w.reshape(position, (ONE,))
    if not c.shape("self"):
        return c.w.reshape(c.tensor("source"), ())
    return update(c, c.axis("dim"), c.tensor("source"), position)


# ** at indices along any dims **


def index_put(c: Call) -> Value:
    """x[:, i, j] = values or += values; x[:, mask] = values. Rows at an index of one dim are an update in place."""
    given = c["indices"]
    used = [(axis, i) for axis, i in enumerate(given) if i is not None]
    if len(used) == 1 and is_mask(used[0][1]):
        return _put_masked(c, *used[0])
    if any(is_mask(i) for _, i in used):
        raise NotSupported("writing at a mask and at other indices together is not supported; use torch.where")
    if not c["accumulate"] and len(used) == 1 and len(dims_of(used[0][1])) <= 1:
        return _update_at(c, *used[0])
    indices, dims, kept = placed(c.w, len(c.shape("self")), given, c.w.full)
    return scattered(
        c.w, "add" if c["accumulate"] else "set", c.tensor("self"), c.natural("values"), indices, dims, kept
    )


def put(c: Call) -> Value:
    """Elements replaced or added to, by their index in row-major order."""
    x, index, source = (c.tensor(name) for name in ("self", "index", "source"))
    flat, places, values = (c.w.reshape(v, (tensor_type(v).num_elements(),)) for v in (x, index, source))
    return c.w.reshape(scattered(c.w, "add" if c["accumulate"] else "set", flat, values, [places], [0], []), c.dims)


def _update_at(c: Call, axis: int, places: Value) -> Value:
    position = c.w.full(places)
    dims, count = c.shape("self"), tensor_type(position).dims
    taken = (*dims[:axis], *count, *dims[axis + 1 :])
    rows = c.w.full(spread(c.natural("values"), taken))
    if not count:
        rows, position = c.w.reshape(rows, (*dims[:axis], ONE, *dims[axis + 1 :])), c.w.reshape(position, (ONE,))
    return update(c, axis, rows, position)


def _put_masked(c: Call, axis: int, mask: Value) -> Value:
    """x[:, mask] = values as `where`; slice n of the values goes to the n-th true element of the mask."""
    x, own, rank = c.tensor("self"), c.shape("values"), len(dims_of(mask))
    behind = len(c.dims) - axis - rank
    chosen = padded(c.w, c.w.natural(mask), axis + rank, behind)
    if len(own) <= behind:
        values = c.natural("values")
    else:
        # the values may lack leading dims; they have at most one slice for each element of the mask
        at = len(own) - behind - 1
        values = c.tensor("values")
        if own[at] is ONE:
            values = c.w.reshape(values, (*own[:at], *(ONE for _ in range(rank)), *own[at + 1 :]))
        else:
            values = in_turn(c, values, at, c.w.full(mask))
    values = c.w.cast(values, c.element)
    if c["accumulate"]:
        values = c.w.add(x, values)
    return spread(c.w.where(chosen, values, x), c.dims)


FEWER = "the mask is true in more places than there are values"


def in_turn(c: Call, source: SSAValue, axis: int, mask: SSAValue) -> SSAValue:
    """A tensor with the slices of a source along an axis, in order, where a mask is true, and zeros elsewhere; the
    mask's dims replace the axis. The run fails for a source with too few slices.
    """
    dims, places = tensor_type(source).dims, tensor_type(mask).dims
    flat = c.w.reshape(c.w.cast(mask, i64), (product(places),))
    number = c.w.mul(c.w.put(CumulativeOp("sum", flat, 0)), flat)  # 0, or 1 plus the index in the source
    zeros = c.w.expand(c.w.scalar(0, tensor_type(source).element_type), (*dims[:axis], ONE, *dims[axis + 1 :]))
    behind = len(dims) - axis - 1
    index = padded(c.w, c.w.reshape(number, places), axis + len(places), behind)
    kept = [*range(axis), *range(axis + len(places), axis + len(places) + behind)]
    return c.w.put(GatherOp(c.w.concat([zeros, source], axis), [index], [axis], kept, FEWER))


def masked_scatter(c: Call) -> Value:
    """`self` with the elements of a source, in order, where a mask is true."""
    mask = c.w.full(spread(c.natural("mask"), c.dims))
    x, source = c.w.expand(c.tensor("self"), c.dims), c.tensor("source")
    flat = c.w.reshape(source, (product(tensor_type(source).dims),))
    whole = mask if c.dims else c.w.reshape(mask, (ONE,))
    return c.w.where(mask, c.w.reshape(in_turn(c, flat, 0, whole), c.dims), x)


# ** slices and diagonals **


def slice_scatter(c: Call) -> Value:
    """x[:, start:end:step] = rows."""
    axis, step = c.axis("dim"), as_expr(c["step"])
    extent, rows = c.shape("self")[axis], c.tensor("src")
    count = tensor_type(rows).dims[axis]
    if c.w.scope.equal(count, extent):
        return rows
    start = part_start(c, c["start"], extent)
    if step is ONE:
        return update(c, axis, rows, c.w.natural(Affine.filled((), start)))
    places = c.w.full(Affine((count,), (step,), start))
    return update(c, axis, rows, places)


def select_scatter(c: Call) -> Value:
    """x[:, i] = row."""
    axis, at = c.axis("dim"), c.size("index")
    dims = c.shape("self")
    if c.w.scope.lt(at, 0):
        at = at + dims[axis]
    rows = c.w.reshape(c.tensor("src"), (*dims[:axis], ONE, *dims[axis + 1 :]))
    return update(c, axis, rows, c.w.natural(Affine.filled((), at)))


def _diagonal(c: Call, rank: int, size: Expr) -> tuple[list[SSAValue], list[int], list[int]]:
    """Indices, dims and kept dims of the diagonal of two dims of a tensor of this rank."""
    starts = (max(-c["offset"], 0), max(c["offset"], 0))
    indices = [padded(c.w, c.w.full(Affine((size,), (ONE,), const(start))), rank - 1) for start in starts]
    return indices, [c["dim1"] % rank, c["dim2"] % rank], list(range(rank - 2))


def diagonal(c: Call) -> Value:
    """The diagonal of two dims, as the last dim."""
    return picked(c.w, c.tensor("self"), *_diagonal(c, len(c.shape("self")), c.dims[-1]), result=c.dims)


def diagonal_scatter(c: Call) -> Value:
    """The diagonal of two dims replaced."""
    return scattered(c.w, "set", c.tensor("self"), c.tensor("src"), *_diagonal(c, len(c.dims), c.shape("src")[-1]))


def diag_embed(c: Call) -> Value:
    """The last dim as the diagonal of two new dims of zeros."""
    zeros = c.w.full(spread(c.w.scalar(0, c.element), c.dims))
    return scattered(c.w, "set", zeros, c.tensor("self"), *_diagonal(c, len(c.dims), c.shape("self")[-1]))


def always_set(c: Call) -> str:
    return "set"


def always_add(c: Call) -> str:
    return "add"


ROWS: dict[str, Row] = {
    "aten.diag_embed.default": diag_embed,
    "aten.diagonal.default aten.diagonal_copy.default": diagonal,
    "aten.diagonal_scatter.default": diagonal_scatter,
    "aten.index_add.default": index_add,
    "aten.index_copy.default": index_copy,
    "aten.index_fill.int_Scalar aten.index_fill.int_Tensor": index_fill,
    "aten.index_put.default": index_put,
    "aten.index_reduce.default": reduced_by(_slices, "source"),
    "aten._unsafe_index_put.default": index_put,
    "aten.masked_scatter.default": masked_scatter,
    "aten.put.default": put,
    "aten.scatter.reduce": scatter(_reduction),
    "aten.scatter.src aten.scatter.value": scatter(always_set),
    "aten.scatter.value_reduce": scatter(_reduction),
    "aten.scatter_add.default": scatter(always_add),
    "aten.scatter_reduce.two": reduced_by(_along, "src"),
    "aten.select_scatter.default": select_scatter,
    "aten.slice_scatter.default": slice_scatter,
}
