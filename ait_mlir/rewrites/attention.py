"""Fuses bmm, scale, mask, softmax and bmm into one attention, which never stores the scores.

Constants may multiply or divide the queries and the scores; the mask is added after that. With 3 dims the batch
includes the heads, and a dim of one head is added. The values between the two products must have no other use.

If keys and values are concatenations of rows, as of a cache and new tokens, the attention reads the pieces instead.
"""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr, f64
from xdsl.ir import Attribute, Operation, Region, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dims import const
from ait_mlir.rewrites.engine.constraints import scope_of_value
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import AttrLike, PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import splat
from ait_mlir.rewrites.engine.registry import constraint, native

MAX_HEAD_SIZE = 256
"""Kernels keep a row of queries and of results in registers or shared memory."""


def scaled(p: PatternBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Match x * c, c * x, x / d or x itself; returns the matched value, c and d."""
    c, d = p.values(2)
    times, over = p.op("ait.mul", [x, c], in_any_order=True), p.op("ait.div", [x, d])
    for scaling, number in ((times, c), (over, d)):
        p.require("is_nonzero_splat", number)
        p.require("same_shape", p.result(scaling), x)
    return p.either(times, over, x), c, d


@pattern(benefit=2)  # before the patterns of attention_scores.py, which do not take up a scale of q
def softmax_attention(p: PatternBuilder) -> None:
    """softmax(scale * q @ k^T + mask) @ v"""
    q, k, v, mask = p.values(4)
    queries, *of_queries = scaled(p, q)
    first = p.op("ait.bmm", [queries, k], {"layout": "rcr"})
    products = p.result(first)
    scores, *of_scores = scaled(p, products)
    masked = p.maybe(p.op("ait.add", [scores, mask], in_any_order=True), scores)
    softmax = p.op("ait.softmax", [masked])
    weights = p.result(softmax)
    root = p.op("ait.bmm", [weights, v], {"layout": "rrr"})

    for value in (products, scores, masked, weights):
        p.require("one_use", value)
    for product in (first, root):
        p.require("no_region", product)
    for value in (q, v):
        p.require("at_most", value, -1, MAX_HEAD_SIZE)
    for value in (k, v):
        p.require("same_batch", q, value)
    p.require("rank_between", q, 3, 4)
    p.require("normalises_last_dim", softmax)
    p.require("broadcasts_to", mask, products)

    operands = [p.native("with_heads", x, q, results=[p.VALUE]) for x in (q, k, v, mask)]
    scale = p.native("scale_of", *of_queries, *of_scores, results=[p.ATTRIBUTE])
    properties: dict[str, AttrLike] = {"scale": scale, "nan_rows": UnitAttr()}
    p.replace(root, "like", p.new("ait.attention", operands, properties), root)


FEW_ROWS = 64
"""Most rows of q for which attention reads k and v in pieces: a copy of k and v would cost about as much as attention
itself. Kernels for more rows read k and v many times and do not take pieces."""


@pattern()
def attention_in_pieces(p: PatternBuilder) -> None:
    """attention of few rows over concat(k, k1) and concat(v, v1) reads the pieces without the concatenation"""
    q, k, k1, v, v1 = p.values(5)
    keys, values = (p.result(p.op("ait.concat", pieces, {"dim": 2})) for pieces in ([k, k1], [v, v1]))
    root = p.op("ait.attention", [q, keys, values, p.rest()])
    p.require("in_one_piece", root)
    p.require("at_most", q, 2, FEW_ROWS)
    p.require("same_rows", k, v)
    p.require("one_use", keys)
    p.require("one_use", values)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "in_pieces", root, k, v, k1, v1)


ATTENTION = patterns(softmax_attention)
PIECES = patterns(attention_in_pieces)


# ** heads **


def repeated(p: PatternBuilder, x: SSAValue) -> SSAValue:
    """The match of x with each head repeated several times in a row."""
    single = p.result(p.op("ait.reshape", [x]))
    several = p.result(p.op("ait.expand", [single]))
    merged = p.result(p.op("ait.reshape", [several]))
    p.require("repeats_heads", x, single, several, merged)
    return merged


@pattern()
def shared_heads(p: PatternBuilder) -> None:
    """attention(q, repeated(k), repeated(v)) = attention(q, k, v): neighbouring heads of q share a head of k and v"""
    q, k, v = p.values(3)
    root = p.op("ait.attention", [q, repeated(p, k), repeated(p, v), p.rest()])
    p.require("in_one_piece", root)
    p.require("same_rows", k, v)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "attention_to", root, k, v)


HEADS = patterns(shared_heads)


# ** constraints and natives **


@constraint
def is_nonzero_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` with one number, not 0, for all elements, so that dividing by it is a scale."""
    number = splat(value)
    return number is not None and number != 0


@native
def scale_of(c: SSAValue | None, d: SSAValue | None, e: SSAValue | None, f: SSAValue | None) -> Attribute:
    """c / d * e / f of splat constants as an f64 attribute; a missing constant counts as 1."""
    scale = 1.0
    for value, divides in ((c, False), (d, True), (e, False), (f, True)):
        number = 1 if value is None else splat(value)
        assert number, "scale_of needs is_nonzero_splat"
        scale = scale / float(number) if divides else scale * float(number)
    return FloatAttr(scale, f64)


@native
def with_heads(r: Rewriter, value: SSAValue | None, q: SSAValue) -> SSAValue | None:
    """The value with a dim of one head, [B, S, D] as [B, 1, S, D], if q has 3 dims. Values of fewer dims broadcast and
    stay unchanged, as do all values if q has 4 dims."""
    if value is None or tensor_type(q).rank == 4 or tensor_type(value).rank < 3:
        return value
    first, *others = tensor_type(value).dims
    return r.reshape(value, (first, 1, *others))


@native
def in_pieces(r: Rewriter, root: AttentionOp, k: SSAValue, v: SSAValue, k1: SSAValue, v1: SSAValue) -> Operation:
    """The attention with keys and values in two pieces."""
    return with_operands(r, root, [root.operands[0], k, v, k1, v1, *root.operands[3:]])


def with_operands(r: Rewriter, root: AttentionOp, operands: list[SSAValue], **properties: Attribute) -> Operation:
    """The same attention with other operands and additional properties."""
    regions = [root.detach_region(region) for region in list(root.regions)]
    kept = {**root.properties, **root.attributes, **properties}
    made = r.create(AttentionOp, operands, list(root.result_types), kept, regions)
    for _ in regions:  # the root stays until it is replaced
        root.add_region(Region())
    return made


@constraint
def in_one_piece(root: AttentionOp) -> bool:
    """The attention has no second piece of keys and values."""
    return root.then is None


@native
def like(r: Rewriter, op: Operation, root: Operation) -> Operation:
    """The result of `op` in the shape of the root's result."""
    t = tensor_type(root.results[0])
    return op if op.results[0].type == t else r.create(ReshapeOp, [op.results[0]], [t])


def keeps_rows(op: object) -> TypeGuard[ReshapeOp]:
    """Whether `op` is a reshape that keeps the last two dims and has more dims before and after."""
    if not isinstance(op, ReshapeOp):
        return False
    before, after = tensor_type(op.input).dims, tensor_type(op.results[0]).dims
    return len(before) > 2 and len(after) > 2 and before[-2:] == after[-2:]


# ** heads **


@constraint
def repeats_heads(value: SSAValue, single: SSAValue, several: SSAValue, merged: SSAValue) -> bool:
    """The shapes are [B, G, L, D], [B, G, 1, L, D], [B, G, n, L, D], [B, G * n, L, D]: each head n times in a row."""
    own, one, many, whole = (tensor_type(x).dims for x in (value, single, several, merged))
    if len(own) != 4 or len(many) != 5:
        return False
    batch, heads, *rest = own
    return (
        one == (batch, heads, const(1), *rest)
        and many == (batch, heads, many[2], *rest)
        and (whole == (batch, heads * many[2], *rest))
    )


@native
def attention_to(r: Rewriter, root: AttentionOp, k: SSAValue, v: SSAValue) -> Operation:
    """The same attention with other keys and values."""
    return with_operands(r, root, [root.operands[0], k, v, *root.operands[3:]])


@constraint
def normalises_last_dim(op: Operation) -> bool:
    """A softmax over the last dim."""
    dim = op.properties.get("dim")
    return isinstance(dim, IntegerAttr) and dim.value.data == tensor_type(op.results[0]).rank - 1


@constraint
def same_batch(a: SSAValue, b: SSAValue) -> bool:
    """Both tensors have the same dims but for the last two."""
    return same_shape(tensor_type(a).dims[:-2], tensor_type(b).dims[:-2], scope_of_value(a))
