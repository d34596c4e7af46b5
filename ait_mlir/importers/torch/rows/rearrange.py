"""Elements in orders that are no view of a row-major tensor: reversed, rotated, in steps, in windows."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, Value, spread
from ait_mlir.compositions import rearrange
from ait_mlir.compositions.index import picked
from ait_mlir.compositions.rearrange import reshaped
from ait_mlir.dims import Expr, const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row, as_expr
from ait_mlir.importers.torch.rows.view import permuted

ONE, ZERO = const(1), const(0)


def flip(c: Call) -> Value:
    """The elements in reverse order along some dims."""
    rank = len(c.dims)
    return rearrange.flip(c.w, c.value("self"), [a % rank for a in c["dims"]] if rank else [])


def roll(c: Call) -> Value:
    """The elements rotated along some dims; without dims, along the flattened tensor."""
    given = list(c["dims"] or ())
    dims = c.dims if given else (product(c.dims),)
    shifts: dict[int, Expr] = {}
    for axis, shift in zip(given or [0], c["shifts"], strict=True):  # a dim may be named twice
        axis = int(axis) % len(dims)
        shifts[axis] = shifts.get(axis, ZERO) + as_expr(shift)
    rolled = rearrange.roll(c.w, reshaped(c.w, c.value("self"), dims), shifts)
    return reshaped(c.w, rolled, c.dims)


def triangle(lower: bool) -> Row:
    """A row for the elements on one side of a diagonal; the others become 0."""
    return lambda c: rearrange.triangle(c.w, c.value("self"), c["diagonal"] or 0, lower)


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
    return picked(c.w, x, [index], [axis], [a for a in range(rank) if a != axis], c.dims)


def as_strided(c: Call) -> Value:
    """Elements of the memory of a tensor without gaps: a view if it can be, else rows or elements by index."""
    sizes, strides = [as_expr(s) for s in c["size"]], [as_expr(s) for s in c["stride"]]
    given = c.node.args[0].meta["val"].storage_offset()
    offset = ZERO if c["storage_offset"] is None else as_expr(c["storage_offset"]) - c.table.shape([given])[0]
    return rearrange.as_strided(c.w, _memory(c), sizes, strides, offset)


def _memory(c: Call) -> SSAValue:
    """The elements of `self` as they lie in memory."""
    value = c.node.args[0].meta["val"]
    strides = c.table.shape(value.stride())
    moving = [a for a, d in enumerate(c.shape("self")) if d is not ONE]
    order = rearrange.descending(c.w, moving, strides)
    if order is None or not rearrange.are_dense(order, c.shape("self"), strides):
        raise NotSupported("as_strided is supported for tensors without gaps; call contiguous() first")
    rest = [a for a in range(len(strides)) if a not in moving]
    return c.w.reshape(c.w.permute(c.tensor("self"), [*order, *rest]), (product(c.shape("self")),))


# ** repetitions **


def repeat_interleave(c: Call) -> Value:
    """Each element along a dim repeated several times; without a dim, along the flattened tensor."""
    x, count = c.tensor("self"), as_expr(c["repeats"])
    if c["dim"] is None:
        x, axis = c.w.reshape(x, (product(c.shape("self")),)), 0
    else:
        axis = c.axis("dim", max(len(c.shape("self")), 1))
        x = x if c.shape("self") else c.w.reshape(x, (ONE,))
    return rearrange.repeat_interleave(c.w, x, count, axis)


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
    "aten.as_strided.default aten.as_strided_copy.default": as_strided,
    "aten.broadcast_tensors.default": broadcast_tensors,
    "aten.eye.default aten.eye.m": identity_matrix,
    "aten.flip.default": flip,
    "aten.movedim.intlist": move_dims,
    "aten.repeat_interleave.self_int": repeat_interleave,
    "aten.roll.default": roll,
    "aten.tril.default": triangle(lower=True),
    "aten.triu.default": triangle(lower=False),
    "aten.unfold.default": unfold,
}
