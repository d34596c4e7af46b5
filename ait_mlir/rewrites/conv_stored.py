"""Convolutions of stored integers, and integers that follow from them: scales come behind the sums."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, f32, f64
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.dtypes import accumulator_type, integer_range, is_byte
from ait_mlir.dialects.ait.elementwise import CastOp, DivOp, ElementwiseOp, MulOp, RoundOp
from ait_mlir.dialects.ait.gemm import ContractionOp, GemmOp
from ait_mlir.dialects.ait.quantize import DequantizeOp, QuantizeOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp
from ait_mlir.rewrites.conv import visits_each_element
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

LARGEST_SUM = 2**31 - 1
MOST_VALUES = 24
"""The most values that are looked at between integers and the sums of integers from which they follow."""


@pattern()
def convolution_of_stored(p: PatternBuilder) -> None:
    """conv(dequantize(q, s), dequantize(r, t)) = conv(q, r) * (s * t), of integers of 8 bits without zero points, with
    one scale for q and scales for the channels of the result; also behind views"""
    x, w = p.values(2)
    root = p.op("ait.conv", [x, w])
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("reads_one_scale", x)
    p.require("reads_scales_of_rows", w)
    p.require("sums_of_windows_fit", root)
    p.replace(root, "convolution_of_bytes_scaled", root)


@pattern()
def integers_of_sums(p: PatternBuilder) -> None:
    """quantize(x, s) = round(x / s) in the range of the integers, where x follows from sums of integers elementwise, so
    that it is computed with them"""
    x, scale = p.values(2)
    root = p.op("ait.quantize", [x, scale])
    p.require("has_no_blocks", root)
    p.require("makes_bytes", root)
    p.require("follows_from_sums_of_bytes", x)
    p.replace(root, "rounded_quotient", root)


STORED = patterns(convolution_of_stored, integers_of_sums)


# ** constraints and natives **


def dequantised(value: SSAValue) -> DequantizeOp | None:
    """The op that makes values of stored integers of 8 bits, without a zero point, behind reshapes and permutes."""
    while isinstance(value.owner, ReshapeOp | PermuteOp):
        value = value.owner.operands[0]
    op = value.owner
    if isinstance(op, DequantizeOp) and is_byte(tensor_type(op.input).element_type) and op.zero is None:
        return op
    return None


@constraint
def reads_one_scale(x: SSAValue) -> bool:
    """The values are those of stored integers of 8 bits with one scale, without a zero point."""
    op = dequantised(x)
    return op is not None and tensor_type(op.scale).num_elements().as_int() == 1


@constraint
def reads_scales_of_rows(weight: SSAValue) -> bool:
    """The values are those of stored integers of 8 bits with one scale, or one for each index along the first dim."""
    op = dequantised(weight)
    if op is None:
        return False
    dims = tensor_type(op.scale).dims
    if tensor_type(op.scale).num_elements().as_int() == 1:
        return True
    value, rows = weight, tensor_type(op.input).dims
    while value is not op.output:
        view = value.owner
        assert isinstance(view, ReshapeOp | PermuteOp)
        value = view.operands[0]
        if tensor_type(view.results[0]).dims[:1] != tensor_type(value).dims[:1]:
            return False
        if isinstance(view, PermuteOp) and view.order()[0] != 0:
            return False
    by_rows = len(dims) == len(rows) and dims[0] is rows[0] and all(dim.as_int() == 1 for dim in dims[1:])
    return by_rows and op.blocks is None


@constraint
def sums_of_windows_fit(root: ConvOp) -> bool:
    """All sums of the convolution fit into 32 bits."""
    largest = scope_of(root).bounds(root.extents().k)[1]
    for value in (root.x, root.weight):
        op = dequantised(value)
        low, high = (0, 0) if op is None else integer_range(tensor_type(op.input).element_type) or (0, 0)
        largest *= max(-low, high)
    return largest <= LARGEST_SUM


@constraint
def has_no_blocks(op: QuantizeOp) -> bool:
    """The scale broadcasts to the values."""
    return op.blocks is None


@constraint
def makes_bytes(op: QuantizeOp) -> bool:
    """The stored numbers are integers of 8 bits."""
    return is_byte(tensor_type(op.output).element_type)


@constraint
def follows_from_sums_of_bytes(value: SSAValue) -> bool:
    """A few elementwise operations and permutes compute the value from a product or convolution of integers of 8
    bits."""
    pending = [value]
    for near in pending:  # the nearest first
        owner = near.owner
        if isinstance(owner, ContractionOp | ConvOp):
            if is_byte(tensor_type(owner.operands[0]).element_type):
                return True
        elif isinstance(owner, ElementwiseOp | PermuteOp) and len(pending) < MOST_VALUES:
            pending += [v for v in owner.operands if v not in pending]
    return False


def stored_as(r: Rewriter, value: SSAValue) -> SSAValue:
    """The stored numbers of a value in its shape."""
    owner = value.owner
    if isinstance(owner, DequantizeOp):
        return owner.input
    assert isinstance(owner, ReshapeOp | PermuteOp)
    inner = stored_as(r, owner.operands[0])
    if isinstance(owner, PermuteOp):
        return r.permute(inner, owner.order())
    return r.reshape(inner, tensor_type(value).dims)


@native
def convolution_of_bytes_scaled(r: Rewriter, root: ConvOp) -> Operation:
    """The convolution of the stored numbers times the scales; a product where the window is one element."""
    image, weight = dequantised(root.x), dequantised(root.weight)
    assert image is not None and weight is not None
    element, channels = tensor_type(root.output).element_type, tensor_type(root.output).dims[-1]
    wide = f64 if element == f64 else f32
    count = 1 if tensor_type(weight.scale).num_elements().as_int() == 1 else channels
    scale = r.mul(r.cast(r.reshape(weight.scale, (count,)), wide), r.cast(r.reshape(image.scale, ()), wide))
    x, w = stored_as(r, root.x), stored_as(r, root.weight)
    block = Block(arg_types=[accumulator_type(tensor_type(x).element_type), wide])
    total = CastOp(block.args[0], wide)
    scaled = MulOp(total.output, block.args[1])
    block.add_ops([total, scaled, YieldOp(scaled.output)])
    if visits_each_element(root):
        rows = r.reshape(w, (channels, tensor_type(w).dims[-1]))
        properties = {"layout": StringAttr("rcr")}
        return r.create(GemmOp, [x, rows, scale], [root.output.type], properties, [Region(block)])
    properties = {name: value for name, value in root.properties.items() if name != "tf32"}
    return r.create(ConvOp, [x, w, scale], [root.output.type], properties, [Region(block)])


@native
def rounded_quotient(r: Rewriter, root: QuantizeOp) -> Operation:
    """The quotient, rounded, in the integers of the result."""
    wide = f64 if tensor_type(root.input).element_type == f64 else f32
    quotient = r.op(DivOp, r.cast(root.input, wide), r.cast(root.scale, wide))
    return r.create(CastOp, [r.op(RoundOp, quotient)], [root.output.type])
