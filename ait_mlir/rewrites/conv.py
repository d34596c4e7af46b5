"""Convolutions with a window of one element become products; channel scales and offsets join weights and biases."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.conv import ConvOp, window
from ait_mlir.dialects.ait.data import ConstantOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR, is_float
from ait_mlir.dialects.ait.elementwise import MulOp
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, as_shape, scope_of, tensor_type
from ait_mlir.dims import Expr, const, floordiv
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern()
def point_convolution(p: PatternBuilder) -> None:
    """conv(x, w) = x @ w^T, where the window is one element and visits all of x"""
    root = p.op("ait.conv", [p.value(), p.value()])
    p.require("visits_each_element", root)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "product_at_each_place", root)


POINTS = patterns(point_convolution)


@pattern(over=("conv", "gemm"))
def factor_into_weight(p: PatternBuilder, mnemonic: str) -> None:
    """conv(x, w) * s = conv(x, w * s), x @ w^T * s = x @ (w * s)^T, where w and s depend only on params"""
    w, s = p.values(2)
    product = p.op(f"ait.{mnemonic}", [p.value(), w], {"layout": "rcr"} if mnemonic == "gemm" else {})
    y = p.result(product)
    root = p.op("ait.mul", [y, s], in_any_order=True)
    p.require("one_use", y)
    p.require("is_row_of", s, y)
    p.require("follows_from_params", w)
    p.require("follows_from_params", s)
    p.require("no_region", product)
    p.require("no_attribute", product, "kernel")
    p.replace(root, "with_scaled_weight", product, s)


def after_bias(p: PatternBuilder, mnemonic: str) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
    """Match f(conv(x, w) + b, s), where b and s depend only on params; returns conv(x, w), b, s and the operation f."""
    y, b, s = p.op(trait="HasEpilogue"), p.value(), p.value()
    inner = p.op("ait.add", [p.result(y), b], in_any_order=True)
    total = p.result(inner)
    root = p.op(mnemonic, [total, s], in_any_order=True)
    p.require("one_use", total)
    p.require("is_row_of", b, p.result(y))
    p.require("is_row_of", s, total)
    p.require("follows_from_params", b)
    p.require("follows_from_params", s)
    return p.result(y), b, s, root


@pattern()
def factor_into_bias(p: PatternBuilder) -> None:
    """(conv(x, w) + b) * s = conv(x, w) * s + b * s, where b and s depend only on params"""
    y, b, s, root = after_bias(p, "ait.mul")
    p.replace(root, p.new("ait.add", [p.new("ait.mul", [y, s]), p.new("ait.mul", [b, s])]))


@pattern()
def offset_into_bias(p: PatternBuilder) -> None:
    """(conv(x, w) + b) + t = conv(x, w) + (b + t), where b and t depend only on params"""
    y, b, t, root = after_bias(p, "ait.add")
    p.replace(root, p.new("ait.add", [y, p.new("ait.add", [b, t])]))


FACTORS = patterns(factor_into_weight, factor_into_bias, offset_into_bias)


@pattern()
def channels_of_blocks(p: PatternBuilder) -> None:
    """conv(x, w) with stride 2 and at most 4 channels = conv(x', w') with stride 1, where a block of 2 x 2 pixels of x,
    padded with zeros to 4 channels each, is one pixel of x' with 16 channels"""
    w = p.value()
    root = p.op("ait.conv", [p.value(), w])
    p.require("follows_from_params", w)
    p.require("reads_blocks_of_places", root)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "on_blocks_of_places", root)


@pattern()
def channels_in_eights(p: PatternBuilder) -> None:
    """conv(x, w) = conv(x', w'), where zeros fill the channels of x and w to a multiple of 8"""
    w = p.value()
    root = p.op("ait.conv", [p.value(), w])
    p.require("follows_from_params", w)
    p.require("has_odd_channels", root)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "with_filled_channels", root)


BLOCKS = patterns(channels_of_blocks)
CHANNELS = patterns(channels_in_eights)


# ** constraints and natives **

EIGHT = 8
"""Elements of 2 bytes in an access of 16."""
BLOCK_DEPTH = 4
"""The channels of each pixel in a block of 2 x 2, so that a block has 16 channels."""
BLOCKS_LAST = (0, 1, 3, 2, 4, 5)
"""The permutation of [N, rows, 2, columns, 2, C] that puts the pixels of a block next to each other."""
LONGEST_WALK = 64
"""The most operations between a value and its params."""


@constraint
def visits_each_element(conv: ConvOp) -> bool:
    """The window of a convolution has one element, and visits each element of the input once, with all channels."""
    plain = conv.stride is None and conv.pad is None and conv.output_pad is None and conv.groups is None
    return plain and all(size == 1 for size in conv.kernel())


@constraint
def reads_blocks_of_places(conv: ConvOp) -> bool:
    """A 2D convolution with stride 2, even sizes and few channels, whose window can be cut into blocks of 2 x 2."""
    depth = tensor_type(conv.weight).dims[-1].as_int()
    if depth is None or not 1 <= depth <= BLOCK_DEPTH or not _is_plain(conv) or conv.strides() != (2, 2):
        return False
    even = all(scope_of(conv).divisible(size, 2) for size in tensor_type(conv.x).dims[1:-1])
    return even and _block_pads(conv) is not None


@constraint
def has_odd_channels(conv: ConvOp) -> bool:
    """A convolution of 2-byte floats whose channels do not fill whole accesses of 16 bytes."""
    depth = tensor_type(conv.weight).dims[-1].as_int()
    return depth is not None and depth % EIGHT != 0 and conv.num_groups() == 1 and _is_plain(conv, dilated=True)


def _is_plain(conv: ConvOp, dilated: bool = False) -> bool:
    """Whether the convolution has 2-byte floats, one group, a window larger than one element, and is not transposed;
    without dilation unless `dilated` allows it."""
    narrow = is_float(tensor_type(conv.x).element_type) and BY_IR[tensor_type(conv.x).element_type].bytes == 2
    near = dilated or all(d == 1 for d in conv.dilations())
    return narrow and near and conv.num_groups() == 1 and not conv.is_transposed() and max(conv.kernel()) > 1


def _block_pads(conv: ConvOp) -> list[int] | None:
    """The leading and trailing pads of the convolution on blocks; None if a trailing pad would be negative."""
    before, behind = list[int](), list[int]()
    sizes, places = tensor_type(conv.x).dims[1:-1], tensor_type(conv.output).dims[1:-1]
    for size, count, taps, pad in zip(sizes, places, conv.kernel(), conv.pads()[:2], strict=True):
        first = (pad + 1) // 2
        last = (count - 1 - first + _blocks(taps, pad) - floordiv(size, 2)).as_int()
        if last is None or last < 0:
            return None
        before.append(first)
        behind.append(last)
    return [*before, *behind]


def _blocks(taps: int, pad: int) -> int:
    """How many blocks a window reads; a window that begins at the second pixel of a block gets a leading zero."""
    return (taps + pad % 2 + 1) // 2


@constraint
def follows_from_params(value: SSAValue) -> bool:
    """The value is a param, or a few operations compute it from params and constants only."""
    pending, seen, found = [value], {value}, False
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or len(seen) > LONGEST_WALK:
            return False
        found = found or isinstance(owner, ParamOp)
        if not owner.operands and not isinstance(owner, ParamOp | ConstantOp):
            return False
        new = [v for v in owner.operands if v not in seen]
        seen.update(new)
        pending += new
    return found


@native
def product_at_each_place(r: Rewriter, conv: ConvOp) -> Operation:
    """The product of x at each pixel with the weight [channels of the result, channels of x]."""
    out, *_, depth = tensor_type(conv.weight).dims
    weight = r.reshape(conv.weight, (out, depth))
    return r.create(
        GemmOp, [conv.x, weight], [conv.output.type], {"layout": StringAttr("rcr")} | rounding(conv), [Region()]
    )


@native
def on_blocks_of_places(r: Rewriter, conv: ConvOp) -> Operation:
    """The convolution with stride 1 whose channels are blocks of 2 x 2 pixels."""
    batch, *sizes, depth = tensor_type(conv.x).dims
    out, *_ = tensor_type(conv.weight).dims
    pads, kernel = conv.pads()[:2], conv.kernel()
    halves = [floordiv(size, 2) for size in sizes]
    pairs = [d for half in halves for d in (half, const(2))]
    x = r.permute(r.reshape(conv.x, (batch, *pairs, depth)), BLOCKS_LAST)
    block_pads = _block_pads(conv)
    assert block_pads is not None
    # Padding of columns is stored as zeros, so that each row of the window is contiguous.
    rows, columns = halves[0], halves[1] + block_pads[1] + block_pads[3]
    block = (const(2), const(2), const(BLOCK_DEPTH))
    filled = _pad(r, x, [0, 0, block_pads[1], 0, 0, 0], (batch, rows, columns, *block))
    x = r.reshape(filled, (batch, rows, columns, 4 * BLOCK_DEPTH))
    counts = [const(_blocks(taps, pad)) for taps, pad in zip(kernel, pads, strict=True)]
    front = [0, *(pad % 2 for pad in pads), 0]
    weight = _pad(r, conv.weight, front, (out, *(n * 2 for n in counts), const(BLOCK_DEPTH)))
    pairs = [d for n in counts for d in (n, const(2))]
    weight = r.permute(r.reshape(weight, (out, *pairs, BLOCK_DEPTH)), BLOCKS_LAST)
    weight = r.reshape(weight, (out, *counts, 4 * BLOCK_DEPTH))
    rest = [block_pads[0], 0, block_pads[2], 0]
    return r.create(ConvOp, [x, weight], [conv.output.type], window(pad=rest), [Region()])


@native
def with_filled_channels(r: Rewriter, conv: ConvOp) -> Operation:
    """The convolution with zeros after the channels of its input and its weight."""

    def filled(value: SSAValue) -> SSAValue:
        *dims, depth = tensor_type(value).dims
        return _pad(r, value, [0] * (len(dims) + 1), (*dims, floordiv(depth + EIGHT - 1, EIGHT) * EIGHT))

    properties = conv.properties | conv.attributes
    return r.create(ConvOp, [filled(conv.x), filled(conv.weight)], [conv.output.type], properties, [Region()])


def _pad(r: Rewriter, value: SSAValue, before: Sequence[int], dims: Sequence[Expr]) -> SSAValue:
    """Zeros before and after a value."""
    properties = {"mode": StringAttr("constant"), "before": ShapeAttr(as_shape(before))}
    return r.create(PadOp, [value], [TensorType.get(dims, tensor_type(value).element_type)], properties).results[0]


@native
def with_scaled_weight(r: Rewriter, product: HasEpilogue, factor: SSAValue) -> Operation:
    """The product or convolution with each row of its weight multiplied by a factor."""
    x, weight = product.operands
    t = tensor_type(weight)
    column = r.reshape(factor, (t.dims[0], *(1 for _ in t.dims[1:])))
    scaled = r.create(MulOp, [weight, column], [t]).results[0]
    properties = product.properties | product.attributes
    return r.create(type(product), [x, scaled], [product.results[0].type], properties, [Region()])
