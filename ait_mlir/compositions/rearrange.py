"""Elements in orders that are no view of a row-major tensor: reversed, rotated, in windows, repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, Spread, Value, as_mask, dims_of, is_mask, lower_triangle, spread
from ait_mlir.building.writer import Writer
from ait_mlir.compositions.index import padded, picked, rows_of
from ait_mlir.dialects.ait.index import GatherOp
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const, floordiv, mod, product

ONE, ZERO = const(1), const(0)


def flip(w: Writer, x: Value, axes: Sequence[int]) -> Value:
    """The elements in reverse order along some axes."""
    dims = dims_of(x)
    return _moved(w, x, {a: Affine((dims[a],), (const(-1),), dims[a] - 1) for a in axes})


def roll(w: Writer, x: Value, shifts: Mapping[int, Expr]) -> Value:
    """The elements moved along some axes by a shift for each axis; elements moved beyond the end return at
    the start.
    """
    dims = dims_of(x)
    return _moved(w, x, {axis: _rolled(w, dims[axis], shift) for axis, shift in shifts.items()})


def _rolled(w: Writer, size: Expr, shift: Expr) -> Affine:
    """The source index of each element along an axis; a negative index counts from the end."""
    if size.as_int() == 0:
        return Affine((size,), (ONE,), ZERO)
    scope = w.scope
    if not (scope.le(0, shift) and scope.le(shift, size)):
        shift = shift + size if scope.lt(shift, 0) and scope.le(-size, shift) else mod(shift, size)
    return Affine((size,), (ONE,), -shift)


def _moved(w: Writer, value: Value, places: dict[int, Affine]) -> Value:
    """The tensor read along some axes at indices that are a formula of the result's index there."""
    dims = dims_of(value)
    places = {a: f for a, f in places.items() if dims[a].as_int() != 1}
    if not places:
        return value
    kept = [a for a in range(len(dims)) if a not in places]
    indices = [padded(w, w.full(f), a + 1, len(dims) - a - 1) for a, f in places.items()]
    return picked(w, w.full(value), indices, list(places), kept, dims)


def triangle(w: Writer, x: Value, diagonal: int | Expr, lower: bool) -> Value:
    """The elements on a diagonal of the last two dims and on one side of it; the others become 0."""
    dims = dims_of(x)
    kept = lower_triangle(dims, diagonal)
    if not lower:
        kept = Affine.filled(dims, 0).plus(kept, -1, dims)
    mask = Mask(dims, (kept,)).proved(w.scope)
    if is_mask(x):
        return as_mask(x).both(mask, dims)
    return spread(w.where(w.natural(mask), w.natural(x), 0), dims)


def reshaped(w: Writer, value: Value, dims: Shape) -> Value:
    """`value` in another shape; it stays a formula, mask or broadcast if only dims of 1 come or go."""
    if isinstance(value, Affine) and (made := value.reshaped(dims)) is not None:
        return made
    if isinstance(value, Mask):
        formulas = [f.reshaped(dims) for f in value.formulas]
        values = [_respread(w, v, value.dims, dims) for v in value.values]
        if None not in formulas and None not in values:
            return Mask(dims, tuple(f for f in formulas if f), tuple(v for v in values if v))
    if isinstance(value, Spread) and (small := _respread(w, value.value, value.dims, dims)) is not None:
        return Spread(dims, small)
    return w.reshape(w.full(value), dims)


def _respread(w: Writer, value: SSAValue, old: Shape, new: Shape) -> SSAValue | None:
    """A value that broadcasts to `old`, reshaped to broadcast to `new`; None unless these differ only in dims of 1."""
    kept = [a for a, d in enumerate(old) if d is not ONE]
    if [old[a] for a in kept] != [d for d in new if d is not ONE]:
        return None
    missing = len(old) - tensor_type(value).rank
    own = (*(ONE for _ in range(missing)), *tensor_type(value).dims)
    rest = iter(own[a] for a in kept)
    return w.reshape(value, tuple(ONE if d is ONE else next(rest) for d in new))


# ** windows **


def as_strided(w: Writer, flat: SSAValue, sizes: Sequence[Expr], strides: Sequence[Expr], offset: Expr) -> Value:
    """Elements of a flat tensor at `offset` plus the sum of index * stride over the dims: a view if possible, else rows
    or elements by index.

    Elements past the end are refused if the dims prove them; in a run they are treated like indices of `index_select`.
    """
    total = tensor_type(flat).dims[0]
    last = sum(((n - 1) * s for n, s in zip(sizes, strides, strict=True)), offset)
    if w.scope.le(total, last) and w.scope.positive(product(sizes)):
        raise w.unsupported(f"reads up to element {last} of {total}, counted from 0")
    if w.scope.lt(offset, 0):
        raise w.unsupported(f"reads elements before the first one, from {offset} on; call it on the whole tensor")
    moving = [a for a, s in enumerate(sizes) if s is not ONE and strides[a] is not ZERO]
    small = tuple(s if a in moving else ONE for a, s in enumerate(sizes))
    order = descending(w, moving, strides)
    count = product([sizes[a] for a in moving])
    if order is not None and are_dense(order, sizes, strides) and _is_within(w, flat, offset, count):
        rows = w.reshape(w.slice(flat, 0, offset, count), [sizes[a] for a in order])
        found = w.permute(rows, [order.index(a) for a in moving])
    else:
        found = w.full(_by_rows(w, flat, [(sizes[a], strides[a]) for a in moving], offset))
    return spread(w.reshape(found, small), tuple(sizes))


def descending(w: Writer, axes: Sequence[int], strides: Sequence[Expr]) -> list[int] | None:
    """The axes from the largest stride to the smallest; None if the order is not known."""
    scope, order = w.scope, list[int]()
    for axis in axes:
        at = len(order)
        while at > 0 and scope.lt(strides[order[at - 1]], strides[axis]):
            at -= 1
        if at > 0 and not scope.le(strides[axis], strides[order[at - 1]]):
            return None
        order.insert(at, axis)
    return order


def are_dense(order: Sequence[int], sizes: Sequence[Expr], strides: Sequence[Expr]) -> bool:
    """Whether the elements lie without gaps; `order` has the axes from the largest stride to the smallest."""
    step = ONE
    for axis in reversed(order):
        if strides[axis] is not step:
            return False
        step = step * sizes[axis]
    return True


def _is_within(w: Writer, flat: SSAValue, offset: Expr, count: Expr) -> bool:
    return w.scope.le(0, offset) and w.scope.le(offset + count, tensor_type(flat).dims[0])


def _by_rows(w: Writer, flat: SSAValue, loops: list[tuple[Expr, Expr]], offset: Expr) -> Value:
    """Elements of memory by index; whole rows if all strides but the last are multiples of the last size."""
    scope, total = w.scope, tensor_type(flat).dims[0]
    width = loops[-1][0].as_int() if loops and loops[-1][1] is ONE else None
    outer = loops[:-1]
    if not width or not all(scope.divisible(e, width) for e in (total, offset, *(s for _, s in outer))):
        width, outer = 1, loops
    places = Affine(
        tuple(size for size, _ in outer), tuple(floordiv(s, width) for _, s in outer), floordiv(offset, width)
    )
    table = w.reshape(flat, (floordiv(total, width), const(width)))
    return rows_of(w, table, places)


def every(w: Writer, x: SSAValue, axis: int, start: Expr, size: Expr, step: int) -> SSAValue:
    """Every `step`-th element of x along an axis, as the first column of rows of `step` elements; the last row may
    reach beyond the end. By index if there may be no element.
    """
    dims, scope = tensor_type(x).dims, w.scope
    extent, first = dims[axis], start.as_int()

    def column(part: SSAValue, at: Expr, count: Expr) -> SSAValue:
        rows = w.reshape(part, (*dims[:axis], count, step, *dims[axis + 1 :]))
        return w.reshape(w.slice(rows, axis + 1, at, ONE), (*dims[:axis], count, *dims[axis + 1 :]))

    if scope.equal(size * step, extent) and first is not None and first < step:
        return column(x, start, size)
    if scope.le(start + size * step, extent):
        return column(w.slice(x, axis, start, size * step), ZERO, size)
    if not scope.positive(size):
        places = w.full(Affine((size,), (const(step),), start))
        index = w.reshape(places, tuple(size if a == axis else ONE for a in range(len(dims))))
        return w.put(GatherOp(x, [index], [axis], [a for a in range(len(dims)) if a != axis]))
    last = w.slice(x, axis, start + (size - 1) * step, ONE)
    if size is ONE:
        return last
    return w.concat([column(w.slice(x, axis, start, (size - 1) * step), ZERO, size - 1), last], axis)


# ** repetitions, and elements between channels and places **


def repeat_interleave(w: Writer, x: SSAValue, count: Expr, axis: int) -> SSAValue:
    """The tensor with each element along an axis repeated `count` times, side by side."""
    dims = tensor_type(x).dims
    grouped = w.reshape(x, (*dims[: axis + 1], ONE, *dims[axis + 1 :]))
    wide = w.expand(grouped, (*dims[: axis + 1], count, *dims[axis + 1 :]))
    return w.reshape(wide, (*dims[:axis], dims[axis] * count, *dims[axis + 1 :]))


def pixel_shuffle(w: Writer, x: SSAValue, r: int, channels: int) -> SSAValue:
    """The tensor with each group of r * r channels moved to a block of r x r places; `channels` is the axis of the
    channels, before or after the last two other dims (arXiv:1609.05158).
    """
    dims, (first, second) = tensor_type(x).dims, _places(x, channels)
    parts = _cut(dims, {channels: (floordiv(dims[channels], r * r), const(r), const(r))})
    at = {a: a if a <= channels else a + 2 for a in range(len(dims))}
    inner = {first: channels + 1, second: channels + 2}
    order = [d for a in range(len(dims)) for d in ([at[a], inner[a]] if a in inner else [at[a]])]
    result = [d * r if a in inner else floordiv(d, r * r) if a == channels else d for a, d in enumerate(dims)]
    return w.reshape(w.permute(w.reshape(x, parts), order), result)


def pixel_unshuffle(w: Writer, x: SSAValue, r: int, channels: int) -> SSAValue:
    """The reverse of `pixel_shuffle`."""
    dims, (first, second) = tensor_type(x).dims, _places(x, channels)
    parts = _cut(dims, {a: (floordiv(dims[a], r), const(r)) for a in (first, second)})
    at = {a: a + (a > first) + (a > second) for a in range(len(dims))}
    order = [
        d for a in range(len(dims)) for d in ([at[a], at[first] + 1, at[second] + 1] if a == channels else [at[a]])
    ]
    result = [
        floordiv(d, r) if a in (first, second) else d * (r * r) if a == channels else d for a, d in enumerate(dims)
    ]
    return w.reshape(w.permute(w.reshape(x, parts), order), result)


def _places(x: SSAValue, channels: int) -> tuple[int, int]:
    """The two spatial axes: the last two besides the axis of the channels."""
    first, second = [a for a in range(tensor_type(x).rank) if a != channels][-2:]
    return first, second


def _cut(dims: Shape, parts: Mapping[int, Shape]) -> Shape:
    """A shape with some dims replaced by several."""
    return tuple(d for a, dim in enumerate(dims) for d in parts.get(a, (dim,)))


# ** channels **


def channels_last(w: Writer, x: SSAValue, rank: int) -> SSAValue:
    """[batch, channels, `rank` dims] as [batch, dims, channels]; a missing batch becomes a dim of 1."""
    dims = tensor_type(x).dims
    if len(dims) == rank + 1:
        x = w.reshape(x, (1, *dims))
    return w.permute(x, [0, *range(2, rank + 2), 1])


def channels_first(w: Writer, y: SSAValue, batched: bool = True) -> SSAValue:
    """[batch, dims, channels] as [batch, channels, dims], without the batch where there was none."""
    rank = tensor_type(y).rank
    y = w.permute(y, [0, rank - 1, *range(1, rank - 1)])
    return y if batched else w.reshape(y, tensor_type(y).dims[1:])
