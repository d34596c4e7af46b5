"""Tensors from nothing and from tables: arange, fills, embeddings, indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.elementwise import AddOp, MulOp
from ait_mlir.dialects.ait.index import EmbeddingOp, MaskedSelectOp, UpdateSliceOp
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr, dims_of
from ait_mlir.importers.torch.known import Affine, Mask, Spread, Value
from ait_mlir.importers.torch.rows.common import INTEGERS, is_mask, spread
from ait_mlir.importers.torch.rows.view import cut

ONE, ZERO = const(1), const(0)


def arange(c: Call) -> Value:
    """start, start + step, ...: known, and never written where only masks and positions need it."""
    start, step = c.arguments.get("start", 0), c.arguments.get("step", 1)
    counted = Affine(c.dims, (as_expr(step),), as_expr(start))
    if c.element in INTEGERS:
        return Affine(c.dims, counted.steps, counted.offset, c.element)
    return c.w.cast(c.w.natural(counted), c.element)


def filled(number: Callable[[Call], Any]) -> Row:
    """The same number everywhere."""

    def row(c: Call) -> Value:
        value = number(c)
        if c.element == i1:
            return Mask(c.dims) if value else Mask(c.dims, (Affine.filled(c.dims, -1),))
        if c.element in INTEGERS:
            return Affine.filled(c.dims, as_expr(value if isinstance(value, Expr) else int(value)), c.element)
        if isinstance(value, Expr):
            return spread(c.w.cast(c.w.natural(Affine.filled((), value)), c.element), c.dims)
        return spread(c.w.scalar(float(value), c.element), c.dims)

    return row


def embedding(c: Call) -> Value:
    """Rows of a table; of positions in order, a slice of it."""
    return rows_of(c, c.tensor("weight"), c.value("indices"))


def rows_of(c: Call, table: SSAValue, ids: Value) -> Value:
    """`table[ids]`, for a table of two dims."""
    width = tensor_type(table).dims[1]
    if isinstance(ids, Affine) and (placed := _in_order(c, ids)) is not None:
        axis, start, size = placed
        rows = c.w.slice(table, 0, start, size)
        small = [ONE] * len(ids.dims)
        if axis is not None:
            small[axis] = size
        while small and small[0] is ONE:
            small.pop(0)
        return spread(c.w.reshape(rows, (*small, width)), (*ids.dims, width))
    found = c.w.op(EmbeddingOp, table, c.w.natural(ids))
    return spread(found, (*dims_of(ids), width))


def _in_order(c: Call, ids: Affine) -> tuple[int | None, Expr, Expr] | None:
    """The one axis along which indices count up by 1, their start and number; axis None for one index."""
    axes = ids.moving_axes()
    if len(axes) > 1 or not c.w.scope.le(0, ids.offset):
        return None
    if not axes:
        return None, ids.offset, ONE
    if ids.steps[axes[0]].as_int() != 1:
        return None
    return axes[0], ids.offset, ids.dims[axes[0]]


def index_select(c: Call) -> Value:
    """Slabs along a dim; the others are one row of a table."""
    return _take(c, c.axis("dim"), c.value("index"))


def _take(c: Call, axis: int, ids: Value) -> Value:
    if axis != 0:
        raise NotSupported("picking along a dim other than the first is supported for positions in order only")
    x = c.tensor("self")
    count, *rest = tensor_type(x).dims
    width = ONE
    for d in rest:
        width = width * d
    found = rows_of(c, c.w.reshape(x, (count, width)), ids)
    return c.w.reshape(c.w.full(found), c.dims)


def masked_select(c: Call) -> Value:
    """The elements where a mask is true; both are broadcast to one shape."""
    x, mask = c.tensor("self"), c.value("mask")
    dims = broadcast_shapes_of(c, tensor_type(x).dims, dims_of(mask))
    return _selected(c, c.w.expand(x, dims), c.w.full(spread(c.w.natural(mask), dims)))


def broadcast_shapes_of(c: Call, a: Shape, b: Shape) -> Shape:
    """The broadcast of two shapes that PyTorch has found to fit."""
    rank = max(len(a), len(b))
    a, b = (ONE,) * (rank - len(a)) + a, (ONE,) * (rank - len(b)) + b
    return tuple(y if x is ONE else x for x, y in zip(a, b, strict=True))


def _selected(c: Call, x: SSAValue, mask: SSAValue) -> Value:
    return c.w.add(MaskedSelectOp(x, mask, c.type()))


def index(c: Call) -> Value:
    """x[i, j, ...]: of positions in order, a view; of one tensor on the first dim, rows of a table; x[mask]."""
    given = c["indices"]
    x = c.value("self")
    if len(given) == 1 and is_mask(given[0]):
        return _selected(c, c.tensor("self"), c.w.full(given[0]))
    if any(i is not None and is_mask(i) for i in given):
        raise NotSupported("indexing with booleans is supported for one mask of the leading dims; use torch.where")
    used = [i for i in given if i is not None]
    formulas = all(isinstance(i, Affine) for i in used) and None not in given
    if formulas and isinstance(x, Affine) and all(i.never_negative(c.w.scope) for i in used):
        return _formula_of_formulas(c, x, used)
    if formulas and (made := _index_in_order(c, x, used)) is not None:
        return made
    if len(given) == 1:
        return _take(c, 0, used[0])
    if None in given:
        raise NotSupported("indexing with tensors is supported on the leading dims")
    return _take_flat(c, c.w.full(x), used)


def _take_flat(c: Call, x: SSAValue, ids: list[Value]) -> Value:
    """x[i, j, ...] on the leading dims: rows of the table that x is with these dims as one."""
    dims = tensor_type(x).dims
    leading, rest = dims[: len(ids)], dims[len(ids) :]
    flat: SSAValue | None = None
    for extent, i in zip(leading, ids, strict=True):
        if isinstance(i, Affine) and c.w.scope.lt(i.offset, 0) and not i.moving_axes():
            i = Affine.filled(i.dims, i.offset + extent, i.element)
        part = c.w.cast(c.w.natural(i), i64)
        if flat is not None:
            scaled = c.w.op(MulOp, flat, c.w.natural(Affine.filled((), extent)))
            part = c.w.op(AddOp, scaled, part)
        flat = part
    assert flat is not None
    table = c.w.reshape(x, (product(leading), product(rest)))
    found = c.w.op(EmbeddingOp, table, flat)
    return spread(c.w.reshape(found, (*tensor_type(flat).dims, *rest)), c.dims)


def _formula_of_formulas(c: Call, x: Affine, ids: list[Affine]) -> Affine:
    """A formula whose leading indices are formulas: a formula again."""
    rest = x.dims[len(ids) :]
    outer = c.dims[: len(c.dims) - len(rest)]
    result = Affine.filled(outer, x.offset, x.element)
    for step, i in zip(x.steps, ids, strict=False):
        result = result.plus(i, step, outer)
    return Affine(c.dims, (*result.steps, *x.steps[len(ids) :]), result.offset, x.element)


def _index_in_order(c: Call, x: Value, ids: list[Affine]) -> Value | None:
    """A slice along each indexed axis, reordered as the indices are broadcast."""
    placed = [_in_order(c, i) for i in ids]
    count = len(ids)
    rank = len(c.dims) - (len(dims_of(x)) - count)
    axes: list[int | None] = []
    for p, i in zip(placed, ids, strict=True):
        if p is None:
            return None
        axes.append(None if p[0] is None else p[0] + rank - len(i.dims))
    moving = [a for a in axes if a is not None]
    if len(set(moving)) != len(moving):
        return None
    for axis, p in enumerate(placed):
        assert p is not None
        x = cut(c, x, axis, p[1], p[2])
    still = [a for a, target in enumerate(axes) if target is None]
    order = [*sorted((a for a in range(count) if a not in still), key=lambda a: axes[a] or 0), *still]
    y = c.w.permute(c.w.full(x), [*order, *range(count, len(dims_of(x)))])
    small = tuple(c.dims[a] if a in moving else ONE for a in range(rank))
    y = c.w.reshape(y, (*small, *c.dims[rank:]))
    if tensor_type(y).element_type == i1:
        return Mask(c.dims, (), (y,))
    return spread(y, c.dims)


def gather(c: Call) -> Value:
    """Elements along a dim at known positions."""
    axis, x, ids = c.axis("dim"), c.value("self"), c.value("index")
    if isinstance(x, Affine) and x.steps[axis] is ZERO:  # the same wherever it is read
        return Affine(dims_of(ids), x.steps, x.offset, x.element)
    if not isinstance(ids, Affine):
        raise NotSupported("gather is supported with positions that follow from the shapes")
    if isinstance(x, Affine):
        steps = tuple(ZERO if a == axis else s for a, s in enumerate(x.steps))
        rest = Affine(ids.dims, steps, x.offset, x.element)
        return rest.plus(ids.times(x.steps[axis]), 1, ids.dims)
    placed = _in_order(c, ids)
    if placed is None or placed[0] not in (axis, None):
        raise NotSupported("gather is supported with positions in order along its dim")
    for a, d in enumerate(ids.dims):
        if a != axis:
            x = cut(c, x, a, ZERO, d)
    part = cut(c, x, axis, placed[1], placed[2])
    return Spread(c.dims, c.w.natural(part)) if dims_of(part) != c.dims else part


def update(c: Call, axis: int, rows: SSAValue, position: SSAValue) -> Value:
    """`self` with rows along an axis replaced, those from a position on, or each at its own."""
    x = c.tensor("self")
    element = tensor_type(x).element_type
    return c.w.add(UpdateSliceOp(x, c.w.cast(rows, element), c.w.cast(position, i64), axis))


def index_copy(c: Call) -> Value:
    """Rows at the places that a tensor says."""
    position = c.tensor("index")
    if tensor_type(position).rank == 0:
        position = c.w.reshape(position, (ONE,))
    return update(c, c.axis("dim"), c.tensor("source"), position)


def index_put(c: Call) -> Value:
    """x[:, i] = rows for one tensor of places."""
    used = [(axis, i) for axis, i in enumerate(c["indices"]) if i is not None]
    if c["accumulate"] or len(used) != 1 or is_mask(used[0][1]):
        raise NotSupported("writing at indices is supported for one tensor of places; elsewhere use torch.where")
    axis, places = used[0]
    position = c.w.full(places)
    dims, count = c.shape("self"), tensor_type(position).dims
    if len(count) > 1:
        raise NotSupported("writing at indices is supported for places of one dim")
    taken = (*dims[:axis], *count, *dims[axis + 1 :])
    rows = c.w.full(spread(c.natural("values"), taken))
    if not count:
        rows, position = c.w.reshape(rows, (*dims[:axis], ONE, *dims[axis + 1 :])), c.w.reshape(position, (ONE,))
    return update(c, axis, rows, position)


def slice_scatter(c: Call) -> Value:
    """x[:, start:end] = rows."""
    axis, start = c.axis("dim"), c["start"]
    if as_expr(c["step"]) is not ONE:
        raise NotSupported("writing to a slice is supported for a step of 1")
    extent, rows = c.shape("self")[axis], c.tensor("src")
    if c.w.scope.equal(tensor_type(rows).dims[axis], extent):
        return rows
    start = ZERO if start is None else as_expr(start)
    if c.w.scope.lt(start, 0):
        start = start + extent
    return update(c, axis, rows, c.w.natural(Affine.filled((), start)))


def select_scatter(c: Call) -> Value:
    """x[:, i] = row."""
    axis, at = c.axis("dim"), c.size("index")
    dims = c.shape("self")
    if c.w.scope.lt(at, 0):
        at = at + dims[axis]
    rows = c.w.reshape(c.tensor("src"), (*dims[:axis], ONE, *dims[axis + 1 :]))
    return update(c, axis, rows, c.w.natural(Affine.filled((), at)))


def copied(c: Call) -> Value:
    """The values of another tensor, in the shape and element type of this one."""
    return c.w.cast(c.w.full(spread(c.natural("src"), c.dims)), c.element)


ROWS: dict[str, Row] = {
    "aten.arange.default": arange,
    "aten.arange.start": arange,
    "aten.arange.start_step": arange,
    "aten.full.default": filled(lambda c: c["fill_value"]),
    "aten.full_like.default": filled(lambda c: c["fill_value"]),
    "aten.new_full.default": filled(lambda c: c["fill_value"]),
    "aten.scalar_tensor.default": filled(lambda c: c["s"]),
    "aten.ones.default": filled(lambda c: 1),
    "aten.ones_like.default": filled(lambda c: 1),
    "aten.new_ones.default": filled(lambda c: 1),
    "aten.zeros.default": filled(lambda c: 0),
    "aten.zeros_like.default": filled(lambda c: 0),
    "aten.new_zeros.default": filled(lambda c: 0),
    # undefined numbers, which a model overwrites
    **{
        f"aten.{name}": filled(lambda c: 0)
        for name in ("empty.memory_format", "empty_like.default", "empty_permuted.default", "new_empty.default")
    },
    "aten.embedding.default": embedding,
    "aten.index_select.default": index_select,
    "aten.index.Tensor": index,
    "aten.gather.default": gather,
    "aten.masked_select.default": masked_select,
    "aten.index_copy.default": index_copy,
    "aten.index_put.default": index_put,
    "aten.slice_scatter.default": slice_scatter,
    "aten.select_scatter.default": select_scatter,
    "aten.copy.default": copied,
}
