"""Elements in an order that no view of a row-major tensor has: reversed, rotated, in steps, in windows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.building.known import Affine, Mask, Value
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const, floordiv, mod, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.importers.torch.rows.common import spread
from ait_mlir.importers.torch.rows.data import rows_of
from ait_mlir.importers.torch.rows.index import padded, picked
from ait_mlir.importers.torch.rows.view import permuted, reshaped

ONE, ZERO = const(1), const(0)


def flip(c: Call) -> Value:
    """The elements in reverse order along some dims."""
    value, dims = c.value("self"), c.dims
    axes: list[int] = [a % len(dims) for a in c["dims"]] if dims else []
    return _moved(c, value, {a: Affine((dims[a],), (const(-1),), dims[a] - 1) for a in axes}, dims)


def roll(c: Call) -> Value:
    """The elements rotated along some dims; without dims, along the flattened tensor."""
    value, given = c.value("self"), list(c["dims"] or ())
    dims = c.dims if given else (product(c.dims),)
    shifts: dict[int, Expr] = {}
    for axis, shift in zip(given or [0], c["shifts"], strict=True):  # a dim may be named twice
        axis = int(axis) % len(dims)
        shifts[axis] = shifts.get(axis, ZERO) + as_expr(shift)
    places = {axis: _rolled(c, dims[axis], shift) for axis, shift in shifts.items()}
    return reshaped(c, _moved(c, reshaped(c, value, dims), places, dims), c.dims)


def _rolled(c: Call, size: Expr, shift: Expr) -> Affine:
    """The sources of the elements; indices below 0 count from the end."""
    if size.as_int() == 0:
        return Affine((size,), (ONE,), ZERO)
    scope = c.w.scope
    if not (scope.le(0, shift) and scope.le(shift, size)):
        shift = shift + size if scope.lt(shift, 0) and scope.le(-size, shift) else mod(shift, size)
    return Affine((size,), (ONE,), -shift)


def _moved(c: Call, value: Value, places: dict[int, Affine], dims: Shape) -> Value:
    """A tensor of these dims whose index along some axes is a formula of the index there."""
    places = {a: f for a, f in places.items() if dims[a].as_int() != 1}
    if not places:
        return value
    x = c.w.full(value)
    kept = [a for a in range(len(dims)) if a not in places]
    indices = [padded(c, c.w.full(f), a + 1, len(dims) - a - 1) for a, f in places.items()]
    return picked(c, x, indices, list(places), kept, dims)


# ** windows **


def unfold(c: Call) -> Value:
    """Windows along a dim, as a new last dim; windows that do not overlap are a view."""
    if not c.shape("self"):
        return c.w.reshape(c.tensor("self"), c.dims)
    axis, size, step = c.axis("dimension"), c.size("size"), c.size("step")
    x, dims, count = c.tensor("self"), c.shape("self"), c.dims[c.axis("dimension")]
    rank = len(dims)
    if step is size:
        part = c.w.slice(x, axis, ZERO, count * size)
        split = c.w.reshape(part, (*dims[:axis], count, size, *dims[axis + 1 :]))
        return c.w.permute(split, [a for a in range(rank + 1) if a != axis + 1] + [axis + 1])
    places = c.w.full(Affine((count, size), (step, ONE), ZERO))
    index = c.w.reshape(places, (*(ONE for _ in range(axis)), count, *(ONE for _ in range(rank - axis - 1)), size))
    return picked(c, x, [index], [axis], [a for a in range(rank) if a != axis])


def as_strided(c: Call) -> Value:
    """Elements of the memory of a tensor without gaps: a view if it can be, else rows or elements by index."""
    flat = _memory(c)
    sizes, strides = [as_expr(s) for s in c["size"]], [as_expr(s) for s in c["stride"]]
    given = c.node.args[0].meta["val"].storage_offset()
    offset = ZERO if c["storage_offset"] is None else as_expr(c["storage_offset"]) - c.table.shape([given])[0]
    moving = [a for a, s in enumerate(sizes) if s is not ONE and strides[a] is not ZERO]
    small = tuple(s if a in moving else ONE for a, s in enumerate(sizes))
    order = _descending(c, moving, strides)
    if order is not None and _are_dense(order, sizes, strides):
        part = c.w.slice(flat, 0, offset, product([sizes[a] for a in order]))
        rows = c.w.reshape(part, [sizes[a] for a in order])
        found = c.w.permute(rows, [order.index(a) for a in moving])
    else:
        found = c.w.reshape(c.w.full(_by_rows(c, flat, [(sizes[a], strides[a]) for a in moving], offset)), small)
    return spread(c.w.reshape(found, small), c.dims)


def _memory(c: Call) -> SSAValue:
    """The elements of `self` as they lie in memory."""
    value = c.node.args[0].meta["val"]
    strides = c.table.shape(value.stride())
    moving = [a for a, d in enumerate(c.shape("self")) if d is not ONE]
    order = _descending(c, moving, strides)
    if order is None or not _are_dense(order, c.shape("self"), strides):
        raise NotSupported("as_strided is supported for tensors without gaps; call contiguous() first")
    rest = [a for a in range(len(strides)) if a not in moving]
    return c.w.reshape(c.w.permute(c.tensor("self"), [*order, *rest]), (product(c.shape("self")),))


def _descending(c: Call, axes: Sequence[int], strides: Sequence[Expr]) -> list[int] | None:
    """The axes from the largest stride to the smallest; None where that is not known."""
    scope, order = c.w.scope, list[int]()
    for axis in axes:
        at = len(order)
        while at > 0 and scope.lt(strides[order[at - 1]], strides[axis]):
            at -= 1
        if at > 0 and not scope.le(strides[axis], strides[order[at - 1]]):
            return None
        order.insert(at, axis)
    return order


def _are_dense(order: Sequence[int], sizes: Sequence[Expr], strides: Sequence[Expr]) -> bool:
    step = ONE
    for axis in reversed(order):
        if strides[axis] is not step:
            return False
        step = step * sizes[axis]
    return True


def _by_rows(c: Call, flat: SSAValue, loops: list[tuple[Expr, Expr]], offset: Expr) -> Value:
    """Elements of memory by index; whole rows where all strides but the last are multiples of the last size."""
    scope, total = c.w.scope, tensor_type(flat).dims[0]
    width = loops[-1][0].as_int() if loops and loops[-1][1] is ONE else None
    outer = loops[:-1]
    if not width or not all(scope.divisible(e, width) for e in (total, offset, *(s for _, s in outer))):
        width, outer = 1, loops
    places = Affine(
        tuple(size for size, _ in outer), tuple(floordiv(s, width) for _, s in outer), floordiv(offset, width)
    )
    table = c.w.reshape(flat, (floordiv(total, width), const(width)))
    return rows_of(c, table, places)


# ** repetitions **


def repeat_interleave(c: Call) -> Value:
    """Each element along a dim repeated several times; without a dim, along the flattened tensor."""
    x, count = c.tensor("self"), as_expr(c["repeats"])
    if c["dim"] is None:
        x, axis = c.w.reshape(x, (product(c.shape("self")),)), 0
    else:
        axis = c.axis("dim", max(len(c.shape("self")), 1))
        x = x if c.shape("self") else c.w.reshape(x, (ONE,))
    dims = tensor_type(x).dims
    grouped = c.w.reshape(x, (*dims[: axis + 1], ONE, *dims[axis + 1 :]))
    return c.w.reshape(c.w.expand(grouped, (*dims[: axis + 1], count, *dims[axis + 1 :])), c.dims)


def move_dims(c: Call) -> Value:
    """Several dims moved; the others keep their order."""
    rank = len(c.dims)
    to = {d % rank: s % rank for s, d in zip(c["source"], c["destination"], strict=True)}
    rest = iter(a for a in range(rank) if a not in to.values())
    return permuted(c, [to[d] if d in to else next(rest) for d in range(rank)])


def identity_matrix(c: Call) -> Value:
    """1 on the diagonal."""
    below = Affine(c.dims, (ONE, const(-1)), ZERO)
    mask = Mask(c.dims, (below, Affine(c.dims, (const(-1), ONE), ZERO)))
    return spread(c.w.cast(c.w.natural(mask), c.element), c.dims)


def broadcast_tensors(c: Call) -> list[Value]:
    """All tensors, broadcast to one shape."""
    shapes = [c.type(i).dims for i in range(len(c["tensors"]))]
    return [spread(c.w.natural(value), dims) for value, dims in zip(c["tensors"], shapes, strict=True)]


ROWS: dict[str, Row] = {
    "aten.as_strided.default": as_strided,
    "aten.as_strided_copy.default": as_strided,
    "aten.broadcast_tensors.default": broadcast_tensors,
    "aten.eye.default": identity_matrix,
    "aten.eye.m": identity_matrix,
    "aten.flip.default": flip,
    "aten.movedim.intlist": move_dims,
    "aten.repeat_interleave.self_int": repeat_interleave,
    "aten.roll.default": roll,
    "aten.unfold.default": unfold,
}
