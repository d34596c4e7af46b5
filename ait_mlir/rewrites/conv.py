"""Convolutions of single elements become products; factors and offsets of channels join weights and biases."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.data import ConstantOp, ParamOp
from ait_mlir.dialects.ait.elementwise import MulOp
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.view import reshape


@pattern()
def point_convolution(p: PatternBuilder) -> None:
    """conv(x, w) = x @ w^T, where the window is one element that visits all of x"""
    root = p.op("ait.conv", [p.value(), p.value()])
    p.require("visits_each_element", root)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "product_at_each_place", root)


POINTS = patterns(point_convolution)


@pattern(over=("conv", "gemm"))
def factor_into_weight(p: PatternBuilder, mnemonic: str) -> None:
    """conv(x, w) * s = conv(x, w * s), x @ w^T * s = x @ (w * s)^T, where w and s follow from params alone"""
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


@pattern()
def factor_into_bias(p: PatternBuilder) -> None:
    """(conv(x, w) + b) * s = conv(x, w) * s + b * s, where b and s follow from params alone"""
    y, b, s = p.op(trait="HasEpilogue"), p.value(), p.value()
    inner = p.op("ait.add", [p.result(y), b], in_any_order=True)
    total = p.result(inner)
    root = p.op("ait.mul", [total, s], in_any_order=True)
    p.require("one_use", total)
    p.require("is_row_of", b, p.result(y))
    p.require("is_row_of", s, total)
    p.require("follows_from_params", b)
    p.require("follows_from_params", s)
    p.replace(root, p.new("ait.add", [p.new("ait.mul", [p.result(y), s]), p.new("ait.mul", [b, s])]))


@pattern()
def offset_into_bias(p: PatternBuilder) -> None:
    """(conv(x, w) + b) + t = conv(x, w) + (b + t), where b and t follow from params alone"""
    y, b, t = p.op(trait="HasEpilogue"), p.value(), p.value()
    inner = p.op("ait.add", [p.result(y), b], in_any_order=True)
    total = p.result(inner)
    root = p.op("ait.add", [total, t], in_any_order=True)
    p.require("one_use", total)
    p.require("is_row_of", b, p.result(y))
    p.require("is_row_of", t, total)
    p.require("follows_from_params", b)
    p.require("follows_from_params", t)
    p.replace(root, p.new("ait.add", [p.result(y), p.new("ait.add", [b, t])]))


FACTORS = patterns(factor_into_weight, factor_into_bias, offset_into_bias)


# ** constraints and natives **

LONGEST_WALK = 64
"""The most operations between a value and its params."""


@constraint
def visits_each_element(conv: ConvOp) -> bool:
    """The window of a convolution has one element, and visits each element of the input once, with all channels."""
    plain = conv.stride is None and conv.pad is None and conv.output_pad is None and conv.groups is None
    return plain and all(size == 1 for size in conv.kernel())


@constraint
def follows_from_params(value: SSAValue) -> bool:
    """The value is a param, or computed from params and constants alone in a few operations."""
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
    """The product of x at all places with the weight [channels of the result, channels of x]."""
    out, *_, depth = tensor_type(conv.weight).dims
    weight = reshape(r, conv.weight, (out, depth)).results[0]
    return r.create(GemmOp, [conv.x, weight], [conv.output.type], {"layout": StringAttr("rcr")}, [Region()])


@native
def with_scaled_weight(r: Rewriter, product: HasEpilogue, factor: SSAValue) -> Operation:
    """The product or convolution with each row of its weight multiplied by a factor."""
    x, weight = product.operands
    t = tensor_type(weight)
    column = reshape(r, factor, (t.dims[0], *(1 for _ in t.dims[1:]))).results[0]
    scaled = r.create(MulOp, [weight, column], [t]).results[0]
    properties = product.properties | product.attributes
    return r.create(type(product), [x, scaled], [product.results[0].type], properties, [Region()])
