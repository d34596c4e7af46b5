"""Rewrites rotary position embeddings to products and sums of halves.

The tables of cosines and sines contain each value twice, once for each half of a head's elements. The concatenation
that repeats a table moves after the ops that compute it, so these run once; then the rotation reads one half.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp, SliceOp
from ait_mlir.dims import const
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.view import reshape


@pattern()
def unary_of_doubled(p: PatternBuilder) -> None:
    """f(concat(x, x)) = concat(f(x), f(x))"""
    x, dim = p.value(), p.attr()
    twice = p.op("ait.concat", [x, x], {"dim": dim})
    root = p.op(operands=[p.result(twice)], trait="ScalarLike")
    once = p.result(p.native("on_operand", root, x))
    p.replace(root, p.new("ait.concat", [once, once], {"dim": dim}))


@pattern()
def reshape_of_doubled(p: PatternBuilder) -> None:
    """reshape(concat(x, x)) = concat(reshape(x), reshape(x)), where the dim that is doubled stays the last"""
    x = p.value()
    twice = p.op("ait.concat", [x, x])
    root = p.op("ait.reshape", [p.result(twice)])
    p.require("along_last_dim", twice)
    p.require("same_last_dim", p.result(root), p.result(twice))
    once = p.result(p.native("reshape_rows", root, x))
    p.replace(root, "concat_last", once, once)


@pattern(over=("slice", "split"))
def rotation(p: PatternBuilder, halves: str) -> None:
    """x * concat(c, c) + concat(-b, a) * concat(s, s) = concat(a * c - b * s, b * c + a * s), for x = concat(a, b)"""
    x, c, s = p.values(3)
    if halves == "slice":
        first, second = p.op("ait.slice", [x]), p.op("ait.slice", [x])
        a, b = p.result(first), p.result(second)
        p.require("is_half", first, 0)
        p.require("is_half", second, 1)
    else:
        parts = p.op("ait.split", [x], results=2)
        a, b = p.result(parts, 0), p.result(parts, 1)
        p.require("along_last_dim", parts)
        p.require("same_type", a, b)
    turned = p.op("ait.concat", [p.result(p.op("ait.neg", [b])), a])
    cosines, sines = p.op("ait.concat", [c, c]), p.op("ait.concat", [s, s])
    straight = p.result(p.op("ait.mul", [x, p.result(cosines)]))
    crossed = p.result(p.op("ait.mul", [p.result(turned), p.result(sines)]))
    root = p.op("ait.add", [straight, crossed])
    p.require("along_last_dim", cosines)
    p.require("along_last_dim", sines)
    p.require("same_type", p.result(root), x)
    first_half = p.new("ait.sub", [p.result(p.new("ait.mul", [a, c])), p.result(p.new("ait.mul", [b, s]))])
    second_half = p.new("ait.add", [p.result(p.new("ait.mul", [b, c])), p.result(p.new("ait.mul", [a, s]))])
    p.replace(root, "concat_last", p.result(first_half), p.result(second_half))


ROTARY = patterns(unary_of_doubled, reshape_of_doubled, rotation)


# ** constraints and natives **


@constraint
def is_half(op: SliceOp, which: IntegerAttr) -> bool:
    """The slice is the first (0) or second (1) half of the last dim, and whole in the others."""
    scope, part = scope_of(op), tensor_type(op.output)
    *outer, last = tensor_type(op.input).dims
    size = part.dims[-1]
    if not same_dims(part.dims[:-1], tuple(outer), scope) or not scope.equal(size * 2, last):
        return False
    start = op.offsets.data[-1]
    return scope.equal(start, size if which.value.data else const(0))


@native
def on_operand(r: Rewriter, op: Operation, operand: SSAValue) -> Operation:
    """The same elementwise operation on another operand."""
    element = tensor_type(op.results[0]).element_type
    result = TensorType.get(tensor_type(operand).dims, element)
    return r.create(type(op), [operand], [result], op.properties | op.attributes)


@native
def reshape_rows(r: Rewriter, like: ReshapeOp, value: SSAValue) -> Operation:
    """The value in the leading dims of a reshape's result, its last dim kept."""
    return reshape(r, value, (*tensor_type(like.output).dims[:-1], tensor_type(value).dims[-1]))


@native
def concat_last(r: Rewriter, a: SSAValue, b: SSAValue) -> Operation:
    """Two values end to end along their last dim."""
    return r.create(ConcatOp, [a, b], None, {"dim": IntegerAttr(tensor_type(a).rank - 1, i64)})
