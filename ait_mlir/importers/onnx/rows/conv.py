"""Convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.compositions import conv as composed
from ait_mlir.compositions.contraction import product as matrix_product
from ait_mlir.compositions.functions import power
from ait_mlir.compositions.index import scattered
from ait_mlir.compositions.rearrange import channels_first, channels_last
from ait_mlir.compositions.sampling import sampled
from ait_mlir.dialects.ait.pool import OverlapAddOp, PoolOp, pool_properties
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dims import Expr, const, floordiv, product
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, as_number
from ait_mlir.importers.onnx.rows.common import spatial

Pads = tuple[list[int], list[int]]


def padding(c: Call, sizes: Sequence[Expr], reach: Sequence[int], stride: Sequence[int]) -> Pads:
    """The elements added before and behind each dim, by `pads` or `auto_pad`; `reach` is the length of a window."""
    rank, kind = len(sizes), c.attr("auto_pad", "NOTSET")
    if kind in ("NOTSET", ""):
        found = c.int_list("pads", default=[0] * (2 * rank)) or []
        if len(found) != 2 * rank:
            raise NotSupported(f"attribute pads is {found}, expected {2 * rank} numbers")
        return found[:rank], found[rank:]
    if kind == "VALID":
        return [0] * rank, [0] * rank
    if kind not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotSupported(f"auto_pad is {kind!r}, expected NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    total = [_same_pad(size, n, step) for size, n, step in zip(sizes, reach, stride, strict=True)]
    less, more = [n // 2 for n in total], [n - n // 2 for n in total]
    return (less, more) if kind == "SAME_UPPER" else (more, less)


def _same_pad(size: Expr, reach: int, step: int) -> int:
    """The elements to add so that there are ceil(size / step) windows."""
    if step == 1:
        return reach - 1
    known = size.as_int()
    if known is None:
        raise NotSupported(f"auto_pad with a stride of {step} needs a size that is a number, found {size}; use pads")
    return max((-(-known // step) - 1) * step + reach - known, 0)


def _taps(weight: SSAValue) -> list[int]:
    return [as_number(d) for d in tensor_type(weight).dims[2:]]


def conv(c: Call) -> SSAValue:
    return convolved(c, c.tensor(0), c.tensor(1), c.optional(2))


def convolved(c: Call, x: SSAValue, weight: SSAValue, bias: SSAValue | None) -> SSAValue:
    """The convolution by the attributes of a node."""
    composed.check_rank(c.w, weight)
    taps = _taps(weight)
    rank = len(taps)
    if tensor_type(x).rank != rank + 2:
        raise NotSupported(f"the input has rank {tensor_type(x).rank}, the weight {rank + 2}; expected the same")
    stride, dilation = spatial(c, "strides", rank, 1), spatial(c, "dilations", rank, 1)
    reach = [d * (t - 1) + 1 for d, t in zip(dilation, taps, strict=True)]
    pads = padding(c, tensor_type(x).dims[2:], reach, stride)
    groups = c.attr("group", 1)
    if groups < 1:
        raise NotSupported(f"attribute group is {groups}, expected a number from 1 on")
    return composed.convolution(c.w, x, weight, bias, stride, pads, dilation, groups)


def conv_transpose(c: Call) -> SSAValue:
    """A transposed convolution; `output_shape` and `auto_pad` decide what is cut off."""
    x, weight = c.tensor(0), c.tensor(1)
    composed.check_rank(c.w, weight)
    taps = _taps(weight)
    rank = len(taps)
    stride, dilation = spatial(c, "strides", rank, 1), spatial(c, "dilations", rank, 1)
    more = spatial(c, "output_padding", rank, 0)
    reach = [d * (t - 1) + 1 for d, t in zip(dilation, taps, strict=True)]
    kind, wanted = c.attr("auto_pad", "NOTSET"), c.int_list("output_shape")
    sizes = tensor_type(x).dims[2:]
    if wanted is None and kind in ("NOTSET", "VALID", ""):
        pads = padding(c, sizes, reach, stride)
    else:
        if wanted is None:
            totals = [n - s + o for n, s, o in zip(reach, stride, more, strict=True)]  # the result is size * stride
        else:
            wanted = wanted[-rank:]
            whole = [(as_number(d) - 1) * s + n + o for d, s, n, o in zip(sizes, stride, reach, more, strict=True)]
            totals = [n - w for n, w in zip(whole, wanted, strict=True)]
        # a result that is larger than all windows gets zeros behind
        more = [o - t if t < 0 else o for o, t in zip(more, totals, strict=True)]
        totals = [max(t, 0) for t in totals]
        less, rest = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = (less, rest) if kind == "SAME_UPPER" else (rest, less)
    return composed.transposed(c.w, x, weight, c.optional(2), stride, pads, dilation, c.attr("group", 1), more)


# ** pools **


def pool(kind: str) -> Row:
    """A row for the maximum or the mean of each window."""

    def row(c: Call) -> Result:
        wants_places = len(c.node.output) > 1 and bool(c.node.output[1])
        return pooled(c, c.tensor(0), _properties(c, kind), wants_places)

    return row


def _properties(c: Call, kind: str, divisor: int | None = None) -> dict[str, Attribute]:
    """The properties of `ait.pool` by the attributes of the node. A mean divides by the elements of the window, without
    padding unless `count_include_pad` is set, or by `divisor`.
    """
    x = c.tensor(0)
    rank = tensor_type(x).rank - 2
    window = spatial(c, "kernel_shape", rank, 1)
    stride, dilation = spatial(c, "strides", rank, 1), spatial(c, "dilations", rank, 1)
    reach = [d * (n - 1) + 1 for d, n in zip(dilation, window, strict=True)]
    before, behind = padding(c, tensor_type(x).dims[2:], reach, stride)
    pads = [*before, *behind]
    excludes = kind == "mean" and divisor is None and not c.attr("count_include_pad", 0) and any(pads)
    ceil = bool(c.attr("ceil_mode", 0))
    return pool_properties(kind, window, stride, pads, dilation, ceil=ceil, exclude_pad=excludes, divisor=divisor)


def pooled(c: Call, x: SSAValue, properties: dict[str, Attribute], wants_places: bool = False) -> Result:
    """The pool of x [batch, channels, sizes...], and with `wants_places` where the largest elements are in x."""
    rank = tensor_type(x).rank - 2
    last = channels_last(c.w, x, rank)
    t = tensor_type(last)
    results = [t, TensorType.get(t.dims, i64)] if wants_places else [t]
    op = PoolOp.create(operands=[last], result_types=results, properties=properties)
    c.w.put(op)
    found = [channels_first(c.w, result) for result in op.results]
    if not wants_places:
        return found[0]
    batch, channels, *sizes = tensor_type(x).dims
    places = found[1]
    if c.attr("storage_order", 0) and rank > 1:
        places = _column_major(c, places, sizes)
    plane = product(sizes)
    images = c.w.reshape(c.w.places(batch * channels), (batch, channels, *(1 for _ in sizes)))
    return found[0], c.w.add(places, c.w.mul(images, c.w.number(plane, i64)))


def _column_major(c: Call, places: SSAValue, sizes: Sequence[Expr]) -> SSAValue:
    """Places that count in row-major order as places that count the first dim fastest."""
    total, factor = c.w.scalar(0, i64), const(1)
    for axis, size in enumerate(sizes):
        inner = product(sizes[axis + 1 :])
        index = c.w.rem(c.w.div(places, c.w.number(inner, i64)), c.w.number(size, i64))
        total = c.w.add(c.w.mul(index, c.w.number(factor, i64)), total)
        factor = factor * size
    return total


def lp_pool(c: Call) -> SSAValue:
    """(sum of |x| ** p) ** (1 / p) of each window."""
    x, p = c.tensor(0), c.attr("p", 2)
    summed = pooled(c, power(c.w, c.w.pointwise("abs", x), p), _properties(c, "mean", divisor=1))
    return power(c.w, summed, 1 / p)


def global_pool(kind: str) -> Row:
    """A row for a reduction over all spatial dims, which stay as dims of 1."""
    return lambda c: c.w.reduce(kind, c.tensor(0), range(2, c.rank()), True)


def global_lp_pool(c: Call) -> SSAValue:
    x, p = c.tensor(0), c.attr("p", 2)
    return power(c.w, c.w.reduce("sum", power(c.w, c.w.pointwise("abs", x), p), range(2, c.rank()), True), 1 / p)


def max_unpool(c: Call) -> SSAValue:
    """Zeros with each element where the maximum was."""
    x, places = c.tensor(0), c.tensor(1)
    rank = tensor_type(x).rank - 2
    window, stride = spatial(c, "kernel_shape", rank, 1), spatial(c, "strides", rank, 1)
    pads = c.int_list("pads", default=[0] * 2 * rank) or []
    own = tensor_type(x).dims
    sizes = [
        (d - 1) * s + k - pads[i] - pads[rank + i]
        for i, (d, s, k) in enumerate(zip(own[2:], stride, window, strict=True))
    ]
    least: Shape = (*own[:2], *sizes)
    dims = tuple(c.exprs(2)) if c.has(2) else least
    if dims != least:  # the places count in the smaller tensor
        flat, plane = places, product(sizes)
        rest = c.w.rem(flat, c.w.number(plane, i64))
        image = c.w.div(flat, c.w.number(plane, i64))
        moved = c.w.mul(image, c.w.number(product(dims[2:]), i64))
        for axis in range(rank):
            inner, outer = product(sizes[axis + 1 :]), product(dims[3 + axis :])
            index = c.w.div(rest, c.w.number(inner, i64))
            rest = c.w.rem(rest, c.w.number(inner, i64))
            moved = c.w.add(moved, c.w.mul(index, c.w.number(outer, i64)))
        places = moved
    count = product(own)
    zeros = c.w.filled(0, [product(dims)], tensor_type(x).element_type)
    written = scattered(c.w, "set", zeros, c.w.reshape(x, [count]), [c.w.reshape(places, [count])], [0], [])
    return c.w.reshape(written, dims)


def col2im(c: Call) -> SSAValue:
    """Windows [batch, channels * window, windows] added where they lie in an image."""
    x, image, block = c.tensor(0), c.exprs(1), c.ints(2)
    rank = len(block)
    stride, dilation = spatial(c, "strides", rank, 1), spatial(c, "dilations", rank, 1)
    pads = c.int_list("pads", default=[0] * 2 * rank) or []
    counts = [
        floordiv(n + pads[i] + pads[rank + i] - dilation[i] * (block[i] - 1) - 1, const(stride[i])) + 1
        for i, n in enumerate(image)
    ]
    batch, columns = tensor_type(x).dims[:2]
    channels = floordiv(columns, const(1)) if not block else const(as_number(columns) // _whole(block))
    windows = c.w.reshape(x, (batch, channels, *map(const, block), *counts))
    return c.w.put(OverlapAddOp(windows, (batch, channels, *image), stride, dilation, pads[:rank]))


def _whole(numbers: Sequence[int]) -> int:
    found = 1
    for n in numbers:
        found *= n
    return found


def conv_integer(c: Call) -> SSAValue:
    """The convolution of integers of 8 bits minus their zero points, in 32 bits, computed exactly in f32 or f64."""
    x, weight = c.w.cast(c.tensor(0), i32), c.w.cast(c.tensor(1), i32)
    if c.has(2):
        x = c.w.sub(x, c.w.cast(c.w.reshape(c.tensor(2), ()), i32))
    if c.has(3):
        zero = c.w.cast(c.tensor(3), i32)
        dims = tensor_type(zero).dims
        whole = dims and dims[0].as_int() != 1
        zero = (
            c.w.reshape(zero, (*dims, *(1 for _ in tensor_type(weight).dims[1:]))) if whole else c.w.reshape(zero, ())
        )
        weight = c.w.sub(weight, zero)
    return c.w.cast(convolved(c, c.w.cast(x, f64), c.w.cast(weight, f64), None), i32)


def deform_conv(c: Call) -> SSAValue:
    """A convolution whose windows take samples at places that a tensor moves (arXiv:1811.11168)."""
    x, weight, moves = c.tensor(0), c.tensor(1), c.tensor(2)
    taps = _taps(weight)
    rank, count, element = len(taps), _whole(taps), tensor_type(x).element_type
    stride, dilation = spatial(c, "strides", rank, 1), spatial(c, "dilations", rank, 1)
    pads = c.int_list("pads", default=[0] * 2 * rank) or []
    groups, offsets = c.attr("group", 1), c.attr("offset_group", 1)
    (batch, channels), results = tensor_type(x).dims[:2], tensor_type(moves).dims[2:]
    own = as_number(channels)
    if tensor_type(x).rank != rank + 2 or own % offsets or own % groups:
        raise NotSupported(f"{own} channels of {rank} dims in {groups} groups and {offsets} of offsets do not fit")
    windows = batch * offsets
    points = product((const(count), *results))
    moves = c.w.reshape(moves, (windows, *taps, rank, *results))
    at: list[SSAValue] = []
    for axis in range(rank):
        steps = [const(0)] * (1 + 2 * rank)
        steps[1 + axis], steps[1 + rank + axis] = const(dilation[axis]), const(stride[axis])
        only = [const(1)] * (1 + 2 * rank)
        only[1 + axis], only[1 + rank + axis] = const(taps[axis]), results[axis]
        places = c.w.full(Affine(tuple(only), tuple(steps), const(-pads[axis]), i64))
        moved = c.w.reshape(c.w.slice(moves, 1 + rank, axis, 1), (windows, *taps, *results))
        at.append(c.w.reshape(c.w.add(moved, c.w.cast(places, tensor_type(moved).element_type)), (windows, points)))
    found = sampled(c.w, c.w.reshape(x, (windows, own // offsets, *tensor_type(x).dims[2:])), at)
    if c.has(4):
        found = c.w.mul(found, c.w.reshape(c.tensor(4), (windows, points, 1)))
    columns = c.w.permute(found, [0, 2, 1])  # channels, then the places in a window, then the windows
    inner, whole = own // groups * count, product(results)
    columns = c.w.reshape(columns, (batch, groups, inner, whole))
    made = as_number(tensor_type(weight).dims[0])
    rows = c.w.expand(c.w.reshape(weight, (1, groups, made // groups, inner)), (batch, groups, made // groups, inner))
    y = c.w.reshape(matrix_product(c.w, rows, columns), (batch, made, *results))
    return y if not c.has(3) else c.w.add(y, c.w.cast(c.w.reshape(c.tensor(3), (made, *(1 for _ in taps))), element))


ROWS: dict[str, Row] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "ConvInteger": conv_integer,
    "DeformConv": deform_conv,
    "MaxPool": pool("max"),
    "AveragePool": pool("mean"),
    "LpPool": lp_pool,
    "GlobalAveragePool": global_pool("mean"),
    "GlobalMaxPool": global_pool("max"),
    "GlobalLpPool": global_lp_pool,
    "MaxUnpool": max_unpool,
    "Col2Im": col2im,
}
