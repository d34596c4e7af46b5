"""Reading and writing elements and rows by index tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Value, dims_of, masked_or_spread, spread
from ait_mlir.building.writer import Writer
from ait_mlir.compositions.functions import floor_divide
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.index import EmbeddingOp, GatherOp, MaskedSelectOp, ScatterOp, neutral
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp
from ait_mlir.dims import Expr, const, maximum, product

ONE = const(1)


def at_least(w: Writer, x: SSAValue, axis: int, count: int, says: str) -> SSAValue:
    """x, whose size along `axis` is proved to be `count` or more: if an op has bound the size, a run on a CPU checks it
    and fails with this text. On a GPU, elements that are not there are NaN, or 0 if x has no floats.
    """
    dims = tensor_type(x).dims
    symbols = [w.scope[name] for name in dims[axis].symbols]
    is_bound = any(dim.upper is not None and dim.jagged is None for dim in symbols)
    if not is_bound or w.scope.le(count, dims[axis]):
        return x
    size = maximum(dims[axis], count)  # a place behind the last element is invalid
    places = w.reshape(w.places(size), (size, *(ONE for _ in dims[axis + 1 :])))
    return w.put(GatherOp(x, [places], [axis], [a for a in range(len(dims)) if a != axis], says))


OF_NOTHING = "nothing has no largest, smallest or middle element"


def not_empty(w: Writer, x: SSAValue, axes: Iterable[int]) -> SSAValue:
    """x, which has an element along each of `axes`: `at_least` one."""
    return functools.reduce(lambda y, axis: at_least(w, y, axis, 1, OF_NOTHING), axes, x)


# ** places **


def padded(w: Writer, value: SSAValue, rank: int, behind: int = 0) -> SSAValue:
    """A value that broadcasts to a shape of `rank` dims, reshaped to `rank` dims followed by `behind` dims of 1."""
    dims = tensor_type(value).dims
    return w.reshape(value, (*(ONE for _ in range(rank - len(dims))), *dims, *(ONE for _ in range(behind))))


def alike(w: Writer, indices: Sequence[SSAValue]) -> list[SSAValue]:
    """The index tensors, converted to one element type."""
    types = {tensor_type(i).element_type for i in indices}
    return list(indices) if types in ({i32}, {i64}) else [w.cast(i, i64) for i in indices]


def placed(
    w: Writer, rank: int, given: Sequence[Value | None], write: Callable[[Value], SSAValue]
) -> tuple[list[SSAValue], list[int], list[int]]:
    """The index tensors of `x[:, i, :, j]`, the axes of x that they index, and the positions of x's other axes in the
    result.

    `rank` is the rank of x. As in NumPy, the dims of adjacent indices are at the position of the first one; otherwise
    they come first.
    """
    dims = [d for d, i in enumerate(given) if i is not None]
    used = [i for i in given if i is not None]
    shape: Shape = ()
    for i in used:
        shape = broadcast_shapes(shape, dims_of(i))
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if together else 0
    rest = [d for d in range(rank) if d not in dims]
    kept = [n if n < first else n + len(shape) for n in range(len(rest))]
    behind = len(rest) - first
    return [padded(w, write(i), first + len(shape), behind) for i in used], dims, kept


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """The broadcast of two shapes that fit."""
    rank = max(len(a), len(b))
    a, b = (ONE,) * (rank - len(a)) + a, (ONE,) * (rank - len(b)) + b
    return tuple(y if x is ONE else x for x, y in zip(a, b, strict=True))


# ** reading **


def picked(
    w: Writer, x: SSAValue, indices: Sequence[SSAValue], dims: Sequence[int], kept: Sequence[int], result: Shape
) -> Value:
    """The result of `ait.gather`, broadcast to `result`."""
    y = w.op(GatherOp, x, *alike(w, indices), properties={"dims": dims, "kept": kept})
    assert tensor_type(y).rank == len(result)
    return masked_or_spread(y, result)


def rows_of(w: Writer, table: SSAValue, ids: Value) -> Value:
    """`table[ids]`, for a table of two dims; for consecutive ids within the table, a slice."""
    height, width = tensor_type(table).dims
    placed = in_order(w, ids) if isinstance(ids, Affine) else None
    if isinstance(ids, Affine) and placed is not None and w.scope.le(placed[1] + placed[2], height):
        axis, start, size = placed
        rows = w.slice(table, 0, start, size)
        small = [ONE] * len(ids.dims)
        if axis is not None:
            small[axis] = size
        while small and small[0] is ONE:
            small.pop(0)
        return spread(w.reshape(rows, (*small, width)), (*ids.dims, width))
    found = w.op(EmbeddingOp, table, w.natural(ids))
    return spread(found, (*dims_of(ids), width))


def in_order(w: Writer, ids: Affine) -> tuple[int | None, Expr, Expr] | None:
    """The only axis along which the indices count up by 1, their first value and their number; the axis is None for a
    single index. None for other indices.
    """
    axes = ids.moving_axes()
    if len(axes) > 1 or not w.scope.le(0, ids.offset):
        return None
    if not axes:
        return None, ids.offset, ONE
    if ids.steps[axes[0]].as_int() != 1:
        return None
    return axes[0], ids.offset, ids.dims[axes[0]]


def slices_at(w: Writer, x: SSAValue, axis: int, ids: Value, from_end: bool = False) -> Value:
    """The slices along an axis at the indices of a tensor of one dim. Along the first axis they are rows of a table,
    unless negative indices count from the end.
    """
    dims = tensor_type(x).dims
    result = (*dims[:axis], *dims_of(ids), *dims[axis + 1 :])
    if axis == 0 and not from_end:
        table = w.reshape(x, (dims[0], product(dims[1:])))
        return w.reshape(w.full(rows_of(w, table, ids)), result)
    small = padded(w, w.natural(ids), axis + 1, len(dims) - axis - 1)
    return picked(w, x, [small], [axis], [a for a in range(len(dims)) if a != axis], result)


def gathered(w: Writer, x: SSAValue, axis: int, index: SSAValue) -> SSAValue:
    """Elements along an axis at the positions of an index of the same rank, no larger along the other dims."""
    for a, (n, d) in enumerate(zip(tensor_type(x).dims, tensor_type(index).dims, strict=True)):
        if a != axis and w.scope.le(d, n):  # else the op says which dims do not fit
            x = w.slice(x, a, 0, d)
    kept = [a for a in range(tensor_type(x).rank) if a != axis]
    return w.op(GatherOp, x, index, properties={"dims": [axis], "kept": kept})


def masked_select(w: Writer, x: SSAValue, mask: SSAValue, bound: Expr) -> Sequence[SSAValue]:
    """The elements where a mask is true, and their number, which is the dim `bound`; both broadcast to one shape."""
    dims = broadcast_shapes(tensor_type(x).dims, tensor_type(mask).dims) or (ONE,)
    result = TensorType.get([bound], tensor_type(x).element_type)
    return w.put_all(MaskedSelectOp(w.expand(x, dims), w.expand(mask, dims), result))


# ** writing **


def scattered(
    w: Writer,
    kind: str,
    x: SSAValue,
    values: SSAValue,
    indices: Sequence[SSAValue],
    dims: Sequence[int],
    kept: Sequence[int],
) -> SSAValue:
    """`ait.scatter`; booleans are combined as integers, and repeated indices are read once."""
    element = tensor_type(x).element_type
    wide = i64 if element == i1 and kind != "set" else element
    indices = unrepeated(w, x, values, alike(w, indices), dims, kept)
    operands = w.cast(x, wide), w.cast(values, wide), *indices
    return w.cast(w.op(ScatterOp, *operands, properties={"kind": kind, "dims": dims, "kept": kept}), element)


def unrepeated(
    w: Writer, x: SSAValue, values: SSAValue, indices: Sequence[SSAValue], dims: Sequence[int], kept: Sequence[int]
) -> list[SSAValue]:
    """The index tensors of a scatter, read before an expand along dims that the space has without it: those that the
    values have, too, and whole dims of x that are kept. So the places of an index that is repeated for each column are
    sorted once, not for each column.
    """
    whole, own = tensor_type(x).dims, tensor_type(values).dims
    rank = max(len(own), *(tensor_type(i).rank for i in indices), *(at + 1 for at in kept))
    space = [ONE] * (rank - len(own)) + list(own)
    rest = [d for d in range(len(whole)) if d not in dims]
    columns = {at: whole[d] for d, at in zip(rest, kept, strict=True)}

    def is_there(at: int, size: Expr) -> bool:
        return any(d is not ONE and w.scope.equal(d, size) for d in (space[at], columns.get(at, ONE)))

    found: list[SSAValue] = []
    for index in indices:
        outer, before = tensor_type(index).dims, index.owner
        if isinstance(before, ExpandOp):
            inner = tensor_type(before.input).dims
            inner = (*(ONE for _ in outer[len(inner) :]), *inner)
            pairs = enumerate(zip(inner, outer, strict=True), rank - len(outer))
            if all(a is b or is_there(at, b) for at, (a, b) in pairs):
                index = w.reshape(before.input, inner)
        found.append(index)
    return found


def scattered_along(w: Writer, kind: str, x: SSAValue, axis: int, index: SSAValue, values: SSAValue) -> SSAValue:
    """x with values written or combined along an axis, at the positions of an index of the same rank, no larger along
    the other dims; the values broadcast to the index.
    """
    whole = tensor_type(x).dims
    dims, indices = [axis], [index]
    for a, d in enumerate(tensor_type(index).dims):
        # a part of size 1 of a larger dim would broadcast along that dim: it is addressed by index 0
        if a != axis and d is ONE and whole[a] is not ONE:
            dims.append(a)
            indices.append(w.scalar(0, tensor_type(index).element_type))
    return scattered(w, kind, x, values, indices, dims, [a for a in range(len(whole)) if a not in dims])


NARROW = 64
"""Slices of fewer neighbouring elements are no rows that a copy moves fast."""


def mostly_replaced(w: Writer, x: SSAValue, axis: int, count: Expr) -> bool:
    """Whether `replaced` is faster than an update in place: for narrow slices, at least half of which change."""
    dims = tensor_type(x).dims
    return w.scope.lt(product(dims[axis + 1 :]), NARROW) and w.scope.le(dims[axis], 2 * count)


def replaced(w: Writer, x: SSAValue, axis: int, rows: SSAValue, position: SSAValue) -> SSAValue:
    """x with slices along an axis replaced by slices of `rows`, or by one number.

    `position`, of one dim, has the index of each replaced slice; if an index occurs more than once, the last slice
    counts. Each slice of the result is read from x or `rows`, so that loops which use the result can join.
    """
    dims, kept = tensor_type(x).dims, [a for a in range(tensor_type(x).rank) if a != axis]
    none, numbers = w.filled(-1, (dims[axis],), i64), w.places(tensor_type(position).dims[0])
    sources = scattered(w, "set", none, numbers, [w.cast(position, i64)], [0], [])
    source = padded(w, sources, axis + 1, len(dims) - axis - 1)
    taken = rows
    if tensor_type(rows).rank:
        taken = w.op(GatherOp, rows, source, properties={"dims": [axis], "kept": kept})
    return w.where(w.compare("ge", source, 0), taken, x)


REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}
"""The kinds of `ait.scatter` by PyTorch's names."""


def reduced_into(
    w: Writer, reduce: str, x: SSAValue, values: Value, write: Callable[[str, SSAValue, Value], SSAValue], own: bool
) -> SSAValue:
    """x with values combined at some positions by one of `REDUCTIONS`; a mean of integers rounds down.

    `write` scatters values into a tensor by a kind of `ait.scatter`. With `own`, the elements of x at these positions
    count, too; otherwise only the values do.
    """
    kind, element, shape = REDUCTIONS[reduce], tensor_type(x).element_type, dims_of(values)
    if not own:
        x = write("set", x, spread(w.scalar(neutral(kind, element), element), shape))
    total = write(kind, x, values)
    if reduce != "mean":
        return total
    counts = w.filled(int(own), tensor_type(x).dims, element)
    counts = w.maximum(write("add", counts, spread(w.scalar(1, element), shape)), 1)
    return w.div(total, counts) if is_float(element) else floor_divide(w, total, counts)
