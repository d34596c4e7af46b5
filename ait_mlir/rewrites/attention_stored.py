"""Attention of stored numbers: q, k and v of 8-bit floats are multiplied as they are stored."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import FloatAttr, f16, f32, f64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.dtypes import BY_IR, f8E4M3FN
from ait_mlir.dialects.ait.quantize import DequantizeOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.rewrites.attention import FEW_ROWS, in_one_piece, with_operands
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import splat
from ait_mlir.rewrites.engine.registry import constraint, native

LARGEST_HEAD, PIECE = 128, 16
"""The most columns of a head of 8-bit floats that kernels for tensor cores take, and of what they are a multiple."""


@pattern()
def attention_of_floats(p: PatternBuilder) -> None:
    """attention(dequantize(q, r), dequantize(k, s), dequantize(v, t)) scale c = attention(q, k, v) scale c * r * s
    value_scale t, of floats of 8 bits with known scales

    Attention of few rows stays: other kernels read k and v once for all of them.
    """
    numbers = [p.op("ait.dequantize", [p.rest()]) for _ in range(3)]
    root = p.op("ait.attention", [*map(p.result, numbers), p.rest()], results=None)
    for operand in numbers:
        p.require("stores_e4m3", operand)
        p.require("has_known_scale", operand)
    for operand in (numbers[0], numbers[2]):
        p.require("at_most", p.result(operand), -1, LARGEST_HEAD)
        p.require("divisible", p.result(operand), -1, PIECE)
    p.require("in_one_piece", root)
    p.require("has_softmax", root)
    p.require("scales_by_known_number", root)
    p.require("has_many_rows", root)
    p.require("makes_two_bytes", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "attention_as_stored", root, *numbers)


@pattern()
def attention_of_widened(p: PatternBuilder) -> None:
    """attention(q, k, v) value_scale t = attention(dequantize(q, 1), dequantize(k, 1), dequantize(v, t)), of floats of
    8 bits"""
    root = p.op("ait.attention", [p.rest()], results=None)
    p.require("attends_float8", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "attention_in_floats", root)


FLOATS = patterns(attention_of_floats)
WIDENED = patterns(attention_of_widened)


# ** constraints and natives **


@constraint
def stores_e4m3(op: DequantizeOp) -> bool:
    """The stored numbers are f8E4M3FN."""
    return tensor_type(op.input).element_type == f8E4M3FN


@constraint
def has_known_scale(op: DequantizeOp) -> bool:
    """The scale is one number above 0, which is known."""
    number = splat(op.scale)
    return number is not None and 0 < float(number) < math.inf


@constraint
def has_softmax(root: AttentionOp) -> bool:
    """The weights are a softmax of the scores."""
    return root.no_softmax is None


@constraint
def scales_by_known_number(root: AttentionOp) -> bool:
    """What scores are multiplied by is a number, not one that a run is given."""
    return known_number(root.scale) is not None


@constraint
def has_many_rows(root: AttentionOp) -> bool:
    """The rows of q may be more than a kernel for few rows takes."""
    return scope_of(root).bounds(tensor_type(root.q).dims[2])[1] > FEW_ROWS


@constraint
def makes_two_bytes(root: AttentionOp) -> bool:
    """The result is f16 or bf16."""
    return BY_IR[tensor_type(root.output).element_type].bytes == 2


@constraint
def attends_float8(root: AttentionOp) -> bool:
    """q, k and v are floats of 8 bits."""
    return root.reads_float8


def may_read_float8(op: AttentionOp) -> bool:
    """Whether `attention_of_floats` applies if q, k and v are values of stored numbers with known scales."""
    heads = [tensor_type(x).dims[-1] for x in (op.q, op.v)]
    scope = scope_of(op)
    fits = all(scope.bounds(size)[1] <= LARGEST_HEAD and scope.divisible(size, PIECE) for size in heads)
    checks = (in_one_piece, has_softmax, scales_by_known_number, has_many_rows, makes_two_bytes)
    return fits and "kernel" not in op.attributes and all(check(op) for check in checks)


@native
def attention_as_stored(
    r: Rewriter, root: AttentionOp, q: DequantizeOp, k: DequantizeOp, v: DequantizeOp
) -> Operation:
    """The attention of the stored numbers."""

    def number(op: DequantizeOp) -> float:
        return float(splat(op.scale) or 0)

    scale = (known_number(root.scale) or 0) * number(q) * number(k)
    numbers = [op.input for op in (q, k, v)]
    operands = [*numbers, *root.operands[3:]]
    return with_operands(r, root, operands, scale=FloatAttr(scale, f64), value_scale=FloatAttr(number(v), f64))


@native
def attention_in_floats(r: Rewriter, root: AttentionOp) -> Operation:
    """The attention of the values of q, k and v, in the type of the result, or f16 for results of 8 bits."""
    element = f16 if root.quantises else tensor_type(root.output).element_type
    scale = 1.0 if root.value_scale is None else root.value_scale.value.data

    def values(x: SSAValue, scale: float) -> SSAValue:
        if scale == 1:
            return r.cast(x, element)
        return r.put(DequantizeOp(x, r.scalar(scale, f32), element))

    operands = [values(root.q, 1), values(root.k, 1), values(root.v, scale), *root.operands[3:]]
    made = with_operands(r, root, operands)
    made.properties.pop("value_scale", None)
    return made
