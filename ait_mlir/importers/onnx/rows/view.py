"""Operators on shapes, which move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Mask, spread
from ait_mlir.compositions import pad as padding
from ait_mlir.compositions import rearrange
from ait_mlir.compositions.index import broadcast_shapes, gathered
from ait_mlir.compositions.rearrange import every, flip, pixel_unshuffle, triangle
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import Shape, TensorType, as_shape, tensor_type
from ait_mlir.dialects.ait.view import SplitOp
from ait_mlir.dims import MAX_DIM, MAX_LITERAL, Expr, ceildiv, const, floordiv, maximum, minimum, product
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, Tensor, as_number, full
from ait_mlir.importers.onnx.known import Known
from ait_mlir.importers.onnx.rows.common import formula

ONE, ZERO = const(1), const(0)


# ** shapes **


def reshaped(c: Call, dims: Sequence[Expr]) -> Result:
    """The first input in another shape; it stays a formula or a mask if only dims of 1 come or go."""
    value = c.value(0)
    value = c.w.written(value) if isinstance(value, Known) else value
    return rearrange.reshaped(c.w, value, as_shape(dims))


def reshape(c: Call) -> Result:
    """The same elements in another shape: 0 keeps a dim, -1 is what is left."""
    own = c.shape(0)
    given = c.int_list("shape")
    wanted = c.exprs(1) if given is None else [const(n) for n in given]
    keeps = not c.attr("allowzero", 0)
    dims: list[Expr | None] = []
    for i, n in enumerate(wanted):
        if n.as_int() == 0 and keeps:
            if i >= len(own):
                raise NotSupported(f"the shape keeps dim {i}, but the input has {len(own)} dims")
            n = own[i]
        dims.append(None if n.as_int() == -1 else n)
    return reshaped(c, filled_in(c, own, dims))


def filled_in(c: Call, own: Shape, dims: Sequence[Expr | None]) -> list[Expr]:
    """A shape with the one missing dim."""
    if dims.count(None) > 1:
        raise NotSupported("the shape has -1 twice, expected it once")
    if None not in dims:
        return [d for d in dims if d is not None]
    # dims that stand in both shapes cancel
    left, right = list(own), [d for d in dims if d is not None]
    for d in list(right):
        if d in left and d.as_int() != 0:
            left.remove(d)
            right.remove(d)
    whole, rest = product(left), product(right)
    if rest.as_int() == 0:
        raise NotSupported("the shape has -1 beside a dim of 0")
    missing = c.w.scope.simplified(floordiv(whole, rest))
    return [missing if d is None else d for d in dims]


def flatten(c: Call) -> SSAValue:
    """A matrix of the dims before an axis and those from it on."""
    x, dims = c.tensor(0), c.shape(0)
    axis = c.attr("axis", 1)
    axis = axis + len(dims) if axis < 0 else axis
    return c.w.reshape(x, (product(dims[:axis]), product(dims[axis:])))


def squeeze(c: Call) -> Result:
    dims = c.shape(0)
    axes = c.int_list("axes", 1)
    if axes is None:
        taken = {a for a, d in enumerate(dims) if d is ONE}
    else:
        taken = {c.placed(a, len(dims), "axes") for a in axes}
        for a in sorted(taken):
            c.same(dims[a], ONE)
        if wrong := [a for a in sorted(taken) if not c.w.scope.equal(dims[a], 1)]:
            raise NotSupported(f"dim {wrong[0]} is {dims[wrong[0]]}, expected 1")
    return reshaped(c, [d for a, d in enumerate(dims) if a not in taken])


def unsqueeze(c: Call) -> Result:
    dims, axes = c.shape(0), c.int_list("axes", 1) or []
    rank = len(dims) + len(axes)
    new = {c.placed(a, rank, "axes") for a in axes}
    if len(new) != len(axes):
        raise NotSupported(f"axes are {axes}, expected each once")
    rest = iter(dims)
    return reshaped(c, [ONE if a in new else next(rest) for a in range(rank)])


def transpose(c: Call) -> SSAValue:
    rank = c.rank()
    order = c.int_list("perm", default=list(range(rank))[::-1]) or []
    if sorted(order) != list(range(rank)):
        raise NotSupported(f"perm is {order}, expected each of 0 to {rank - 1}")
    return c.w.permute(c.tensor(0), order)


def expand(c: Call) -> Result:
    """Broadcast to the common shape of the input and the given one."""
    value = c.value(0)
    own, wanted = c.shape(0), tuple(c.exprs(1))
    rank = max(len(own), len(wanted))
    a, b = (ONE,) * (rank - len(own)) + own, (ONE,) * (rank - len(wanted)) + wanted
    for d, e in zip(a, b, strict=True):
        if d is not ONE and e is not ONE:
            c.same(d, e)
    dims = broadcast_shapes(wanted, own)
    if (positions := formula(value)) is not None:
        return positions.broadcast(dims)
    return value.broadcast(dims) if isinstance(value, Mask) else spread(c.natural(0), dims)


def tile(c: Call) -> SSAValue:
    """The whole tensor several times along each dim."""
    x, counts = c.tensor(0), c.exprs(1)
    dims = tensor_type(x).dims
    if len(counts) != len(dims):
        raise NotSupported(f"{len(counts)} repeats for {len(dims)} dims")
    split = c.w.reshape(x, tuple(n for d in dims for n in (ONE, d)))
    wide = c.w.expand(split, tuple(n for r, d in zip(counts, dims, strict=True) for n in (r, d)))
    return c.w.reshape(wide, tuple(r * d for r, d in zip(counts, dims, strict=True)))


# ** parts **


def _clamped(c: Call, given: Expr, extent: Expr) -> Expr:
    """A start or end of a slice, counted from the front, within 0 and `extent`."""
    scope = c.w.scope
    given = _within_reach(given)
    if scope.lt(given, 0):
        given = given + extent
        if not scope.le(0, given):
            given = maximum(given, const(0))
    elif not scope.le(0, given):
        c.w.restrict(given.symbols, lambda other: other.le(0, given))
        raise NotSupported(f"a slice begins or ends at {given}, which may be negative or not; narrow the dims")
    if scope.le(given, extent):
        return given
    return extent if scope.le(extent, given) else minimum(given, extent)


def _within_reach(at: Expr) -> Expr:
    """An index, limited to the largest dim plus 1, because models write huge numbers for "to the end"."""
    n = at.as_int()
    return at if n is None else const(max(-MAX_DIM - 1, min(n, MAX_DIM)))


def slice_(c: Call) -> Result:
    value = c.value(0)
    dims = c.shape(0)
    starts, ends = (
        c.exprs(i) if c.has(i) else [const(max(n, -MAX_LITERAL)) for n in c.int_list(name) or []]
        for i, name in ((1, "starts"), (2, "ends"))
    )
    axes = c.int_list("axes", 3, list(range(len(starts)))) or []
    steps = c.ints(4) if c.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise NotSupported("starts, ends, axes and steps have different lengths")
    at = [c.placed(a, len(dims), "axes") for a in axes]
    if (positions := formula(value)) is not None and all(step > 0 for step in steps):
        for axis, start, end, step in zip(at, starts, ends, steps, strict=True):
            positions = positions.sliced(axis, *_taken(c, positions.dims[axis], start, end, step))
        return positions
    x = full(c.w, value)
    for axis, start, end, step in zip(at, starts, ends, steps, strict=True):
        x = sliced(c, x, axis, start, end, step)
    return x


def sliced(c: Call, x: SSAValue, axis: int, start: Expr, end: Expr, step: int) -> SSAValue:
    """x[start:end:step] along an axis, as in Python."""
    extent = tensor_type(x).dims[axis]
    if step == 0:
        raise NotSupported("a step is 0")
    if step < 0:  # the same elements of the reversed tensor
        x = full(c.w, cast(Tensor, flip(c.w, x, [axis])))
        start, end = (_mirrored(c, n, extent) for n in (start, end))
        step = -step
    first, step, size = _taken(c, extent, start, end, step)
    return c.w.slice(x, axis, first, size) if step == 1 else every(c.w, x, axis, first, size, step)


def _taken(c: Call, extent: Expr, start: Expr, end: Expr, step: int) -> tuple[Expr, int, Expr]:
    """The first index, the step and the number of the indices start:end:step of a dim, with a step above 0."""
    first, last = _clamped(c, start, extent), _clamped(c, end, extent)
    scope = c.w.scope
    length = last - first
    if scope.le(length, 0):
        length = ZERO
    elif not scope.le(0, length):
        length = maximum(length, const(0))
    size = ceildiv(length, const(step))
    return (ZERO if size.as_int() == 0 else first), step, size


def _mirrored(c: Call, at: Expr, extent: Expr) -> Expr:
    """An index of a tensor as one of the reversed tensor; before the first element it is behind the last."""
    scope, at = c.w.scope, _within_reach(at)
    if scope.lt(at, 0):
        at = at + extent
        return extent if scope.lt(at, 0) else extent - 1 - at
    return ZERO if scope.le(extent, at) else extent - 1 - at


def split(c: Call) -> Result:
    """Consecutive parts along an axis: of given sizes, or as many of equal size as the node has results."""
    x, axis = c.tensor(0), c.axis()
    dims, element = tensor_type(x).dims, tensor_type(x).element_type
    if c.has(1) or c.attr("split") is not None:
        given = c.attr("split")
        sizes = c.exprs(1) if given is None else [const(n) for n in given]
    else:
        count = len(c.node.output)
        if (wanted := c.attr("num_outputs", count)) != count:
            raise NotSupported(f"num_outputs is {wanted}, but it has {count} results")
        whole = as_number(dims[axis]) if not c.w.scope.divisible(dims[axis], count) else None
        if whole is None:
            sizes = [floordiv(dims[axis], const(count))] * count
        else:
            each = -(-whole // count)
            sizes = [const(min(each, max(whole - i * each, 0))) for i in range(count)]
    if len(sizes) == 1:
        return (x,)
    types = [TensorType.get((*dims[:axis], n, *dims[axis + 1 :]), element) for n in sizes]
    return tuple(c.w.ops(SplitOp, x, properties={"dim": axis}, results=types))


def concat(c: Call) -> SSAValue:
    """Tensors joined along an axis; those without elements are left out."""
    axis = c.placed(c.attr("axis", 1), c.rank())
    values = c.tensors()
    parts = [formula(c.value(i)) for i in range(len(c.inputs))]
    if axis == c.rank() - 1 and all(p is not None and len(p.dims) > axis and p.dims[axis] is ONE for p in parts):
        joined = c.w.concat(values, axis)
        c.w.columns[joined] = tuple(p.without(axis) for p in parts if p is not None)
        return joined
    for a in range(c.rank()):
        if a != axis:
            for v in values[1:]:
                if tensor_type(v).rank == tensor_type(values[0]).rank:
                    c.same(tensor_type(values[0]).dims[a], tensor_type(v).dims[a])
    kept = [v for v in values if tensor_type(v).rank != c.rank() or tensor_type(v).dims[axis].as_int() != 0]
    return c.w.concat(kept or values[:1], axis)


def pad(c: Call) -> Result:
    """Padding or cropping of some axes."""
    x = c.tensor(0)
    rank = tensor_type(x).rank
    given = c.attr("pads", c.attr("paddings"))
    pads = c.exprs(1) if given is None else [const(n) for n in given]
    axes = [c.placed(a, rank, "axes") for a in c.ints(3)] if c.has(3) else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise NotSupported(f"{len(pads)} pads for {len(axes)} axes, expected two for each")
    before, behind = ([ZERO] * rank for _ in range(2))
    for i, axis in enumerate(axes):
        before[axis], behind[axis] = pads[i], pads[len(axes) + i]
    mode = {"edge": "replicate", "wrap": "circular"}.get(kind := c.attr("mode", "constant"), kind)
    value = c.attr("value", 0.0)
    fill: SSAValue | None = None
    if c.has(2) and mode == "constant":
        if isinstance(c.value(2), Known):
            value = c.array(2).reshape(-1)[0].item()
        else:
            fill = c.w.reshape(c.tensor(2), ())
    element = tensor_type(x).element_type
    value = float(value) if is_float(element) else int(bool(value)) if element == i1 else int(value)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotSupported(f"mode is {kind!r}, expected constant, reflect, edge or wrap")
    order = [n for a in reversed(range(rank)) for n in (before[a], behind[a])]
    if all(n is ZERO for n in order):
        return x
    y = padding.pad(c.w, x, order, mode, value)
    if fill is None:
        return y
    own = padding.pad(c.w, c.w.filled(1, tensor_type(x).dims, i1), order, mode, 0)
    return c.w.where(own, y, fill)


def center_crop_pad(c: Call) -> Result:
    """The middle of a tensor, or the tensor in the middle of zeros."""
    x = c.tensor(0)
    dims, rank = tensor_type(x).dims, c.rank()
    axes = c.int_list("axes", default=list(range(rank))) or []
    pads = [ZERO] * (2 * rank)
    for axis, wanted in zip((c.placed(a, rank, "axes") for a in axes), c.ints(1), strict=True):
        own = as_number(dims[axis])
        more = wanted - own
        before = more // 2 if more > 0 else -((-more) // 2)
        at = 2 * (rank - 1 - axis)
        pads[at], pads[at + 1] = const(before), const(more - before)
    return x if all(n is ZERO for n in pads) else padding.pad(c.w, x, pads)


# ** orders **


def depth_to_space(c: Call) -> SSAValue:
    """Channels moved to blocks of places; in mode DCR the place in the block counts before the channel."""
    x, r = c.tensor(0), c.attr("blocksize", 0)
    batch, channels, height, width = _four(c, x)
    if r < 1:
        raise NotSupported(f"blocksize is {r}, expected a number from 1 on")
    depth = floordiv(channels, const(r * r))
    if c.attr("mode", "DCR") == "DCR":
        cut = c.w.reshape(x, (batch, r, r, depth, height, width))
        moved = c.w.permute(cut, [0, 3, 4, 1, 5, 2])
    else:
        cut = c.w.reshape(x, (batch, depth, r, r, height, width))
        moved = c.w.permute(cut, [0, 1, 4, 2, 5, 3])
    return c.w.reshape(moved, (batch, depth, height * r, width * r))


def space_to_depth(c: Call) -> SSAValue:
    """Blocks of places moved to channels, the place in the block before the channel."""
    x, r = c.tensor(0), c.attr("blocksize", 0)
    batch, channels, height, width = _four(c, x)
    if r < 1:
        raise NotSupported(f"blocksize is {r}, expected a number from 1 on")
    h, w = floordiv(height, const(r)), floordiv(width, const(r))
    if c.attr("mode", "DCR") == "CRD":
        return pixel_unshuffle(c.w, x, r, 1)
    moved = c.w.permute(c.w.reshape(x, (batch, channels, h, r, w, r)), [0, 3, 5, 1, 2, 4])
    return c.w.reshape(moved, (batch, channels * (r * r), h, w))


def _four(c: Call, x: SSAValue) -> Shape:
    if tensor_type(x).rank != 4:
        raise NotSupported(f"the input has rank {tensor_type(x).rank}, expected 4")
    return tensor_type(x).dims


def trilu(c: Call) -> Result:
    """The upper or the lower triangle."""
    k = c.ints(1)[0] if c.has(1) else 0
    return triangle(c.w, c.tensor(0), k, lower=not c.attr("upper", 1))


def reverse_sequence(c: Call) -> SSAValue:
    """The first `lengths[b]` elements of each sequence in reverse order."""
    x, lengths = c.tensor(0), c.tensor(1)
    batch, time = c.axis(1, name="batch_axis"), c.axis(0, name="time_axis")
    dims = tensor_type(x).dims
    steps = c.w.full(Affine(_only(dims, time), _steps(dims, time), ZERO))
    ends = c.w.reshape(c.w.cast(lengths, i64), _only(dims, batch))
    places = c.w.where(c.w.compare("lt", steps, ends), c.w.sub(c.w.sub(ends, 1), steps), steps)
    return gathered(c.w, x, time, c.w.expand(places, dims))


def _only(dims: Shape, axis: int) -> Shape:
    return tuple(d if a == axis else ONE for a, d in enumerate(dims))


def _steps(dims: Shape, axis: int) -> Shape:
    return tuple(const(int(a == axis)) for a in range(len(dims)))


ROWS: dict[str, Row] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Expand": expand,
    "Tile": tile,
    "Slice": slice_,
    "Split": split,
    "Concat": concat,
    "Pad": pad,
    "CenterCropPad": center_crop_pad,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Trilu": trilu,
    "ReverseSequence": reverse_sequence,
}
