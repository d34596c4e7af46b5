"""Rewrites rotary position embeddings to products and sums of halves.

The tables of cosines and sines contain each value twice, once for each half of a head's elements. The concatenation
that repeats a table moves after the ops that compute it, so these run once; then the rotation reads one half. Where
neighbouring elements, not halves, are rotated, the rotation reads and writes every other element.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.elementwise import AddOp, MulOp, NegOp, SubOp
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import const, floordiv
from ait_mlir.rewrites.engine.constraints import scope_of_value
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


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
    """reshape(concat(x, x)) = concat(reshape(x), reshape(x)), where the doubled dim stays last"""
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


@pattern()
def rotation_of_pairs(p: PatternBuilder) -> None:
    """x * c + t * s, where the pairs of t are (-b, a) for the pairs (a, b) of x: (a * c0 - b * s0, b * c1 + a * s1)"""
    x, turned, c, s = p.values(4)
    straight = p.result(p.op("ait.mul", [x, c], in_any_order=True))
    crossed = p.result(p.op("ait.mul", [turned, s], in_any_order=True))
    root = p.op("ait.add", [straight, crossed], in_any_order=True)
    p.require("turns_pairs", turned, x)
    p.require("same_type", p.result(root), x)
    p.require("same_last_dim", c, x)
    p.require("same_last_dim", s, x)
    p.replace(root, "rotate_pairs", x, c, s)


ROTARY = patterns(unary_of_doubled, reshape_of_doubled, rotation, rotation_of_pairs)


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


@constraint
def turns_pairs(turned: SSAValue, x: SSAValue) -> bool:
    """`turned` holds (-b, a) for each pair of neighbours (a, b) along the last dim of x, joined by a concat along a
    last dim of 2."""
    joined = _input_of(turned, ReshapeOp)
    if joined is None or not isinstance(joined.owner, ConcatOp) or len(joined.owner.operands) != 2:
        return False
    dims, scope = _paired(x), scope_of(joined.owner)
    if (
        dims is None
        or not same_dims(tensor_type(joined).dims, dims, scope)
        or joined.owner.dim.value.data != len(dims) - 1
    ):
        return False
    first, second = joined.owner.operands
    negated = _input_of(_unreshaped(first), NegOp)
    places = [None if v is None else _element_of_pairs(_unreshaped(v), x) for v in (negated, second)]
    return same_dims(tensor_type(turned).dims, tensor_type(x).dims, scope) and places == [1, 0]


def _paired(x: SSAValue) -> Shape | None:
    """The shape [..., n / 2, 2] of a tensor [..., n]; None if it has no dims or n is not known to be even."""
    dims = tensor_type(x).dims
    if not dims or not scope_of_value(x).divisible(dims[-1], 2):
        return None
    return (*dims[:-1], floordiv(dims[-1], 2), const(2))


def _element_of_pairs(value: SSAValue, x: SSAValue) -> int | None:
    """Whether a value holds the first (0) or second (1) elements of the pairs of x; None if neither."""
    op, dims = value.owner, _paired(x)
    if dims is None or not isinstance(op, SliceOp | SplitOp) or _input_of(op.operands[0], ReshapeOp) is not x:
        return None
    scope = scope_of(op)
    if not same_dims(tensor_type(op.operands[0]).dims, dims, scope):
        return None
    if not same_dims(tensor_type(value).dims, (*dims[:-1], const(1)), scope):
        return None
    return op.results.index(value) if isinstance(op, SplitOp) else op.offsets.data[-1].as_int()


def _input_of(value: SSAValue, kind: type[Operation]) -> SSAValue | None:
    """The first operand of the op that computes a value, if the op is of this kind; else None."""
    return value.owner.operands[0] if isinstance(value.owner, kind) else None


def _unreshaped(value: SSAValue) -> SSAValue:
    """The input of the reshape that computes `value`, if it only adds or removes dims of 1; else `value` itself."""
    source = _input_of(value, ReshapeOp)
    if source is None:
        return value
    own, other = ([e for e in tensor_type(v).dims if e.as_int() != 1] for v in (value, source))
    return source if same_dims(tuple(own), tuple(other), scope_of_value(value)) else value


@native
def rotate_pairs(r: Rewriter, x: SSAValue, c: SSAValue, s: SSAValue) -> Operation:
    """The pairs of x, rotated with a cosine and a sine for each element."""
    (a, b), (c0, c1), (s0, s1) = (_pairs(r, value) for value in (x, c, s))

    def combined(kind: type[Operation], *factors: tuple[SSAValue, SSAValue]) -> SSAValue:
        products = [r.create(MulOp, pair, [a.type]).results[0] for pair in factors]
        return r.create(kind, products, [a.type]).results[0]

    first, second = combined(SubOp, (a, c0), (b, s0)), combined(AddOp, (b, c1), (a, s1))
    return r.create(ReshapeOp, [concat_last(r, first, second).results[0]], [x.type])


def _pairs(r: Rewriter, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The first and the second elements of the pairs along the last dim, each with a last dim of 1."""
    dims = _paired(value)
    assert dims is not None, "rotate_pairs needs turns_pairs"
    pairs = r.reshape(value, dims)
    half = TensorType.get((*dims[:-1], 1), tensor_type(value).element_type)
    parts = r.create(SplitOp, [pairs], [half, half], {"dim": IntegerAttr(len(dims) - 1, i64)})
    return parts.results[0], parts.results[1]


@native
def on_operand(r: Rewriter, op: Operation, operand: SSAValue) -> Operation:
    """The same elementwise operation on another operand."""
    element = tensor_type(op.results[0]).element_type
    result = TensorType.get(tensor_type(operand).dims, element)
    return r.create(type(op), [operand], [result], op.properties | op.attributes)


@native
def reshape_rows(r: Rewriter, like: ReshapeOp, value: SSAValue) -> Operation:
    """The value reshaped to the leading dims of another reshape's result; its last dim stays."""
    t = tensor_type(value)
    dims = (*tensor_type(like.output).dims[:-1], t.dims[-1])
    return r.create(ReshapeOp, [value], [TensorType.get(dims, t.element_type)])


@native
def concat_last(r: Rewriter, a: SSAValue, b: SSAValue) -> Operation:
    """The concatenation of two values along their last dim."""
    return r.create(ConcatOp, [a, b], None, {"dim": IntegerAttr(tensor_type(a).rank - 1, i64)})
