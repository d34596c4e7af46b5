"""bmm, scale, mask, softmax, bmm become one attention, which never stores the scores.

The scale may multiply or divide, on the scores or on the queries, by a constant; the mask is added after the scale.
With 3 dims the batch counts the heads, too, and one head is added. What comes between the two products must have no
other use.

Keys and values that are concatenations along their rows, as of a cache and new tokens, are read in pieces instead.
"""

from __future__ import annotations

from itertools import product

from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import SSAValue

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns

RANKS = (4, 3)
# Where the scale is applied, by which op, and which of its operands is the constant.
SCALES = ("no_scale", "scores_mul_1", "scores_mul_0", "scores_div_1", "query_mul_1", "query_mul_0", "query_div_1")
MASKS = ("no_mask", "mask_1", "mask_0")

MAX_HEAD_SIZE = 256
"""Kernels keep a row of queries and of results in registers or shared memory."""


def scaled(p: PatternBuilder, x: SSAValue, how: str) -> tuple[SSAValue, SSAValue]:
    """The match of x scaled by a constant; returns the scaled value and the constant."""
    _, op, position = how.split("_")
    c = p.value()
    y = p.result(p.op(f"ait.{op}", [x, c] if position == "1" else [c, x]))
    p.require("is_nonzero_splat", c)
    p.require("same_shape", y, x)
    return y, c


@pattern(over=product(RANKS, SCALES, MASKS))
def softmax_attention(p: PatternBuilder, rank: int, scale: str, mask: str) -> None:
    """softmax(scale * q @ k^T + mask) @ v"""
    q, k, v = p.values(3)
    queries, constant, m = q, None, None
    if scale.startswith("query"):
        queries, constant = scaled(p, q, scale)
    first = p.op("ait.bmm", [queries, k], {"layout": "rcr"})
    products = scores = p.result(first)
    if scale.startswith("scores"):
        p.require("one_use", scores)
        scores, constant = scaled(p, scores, scale)
    if mask != "no_mask":
        m = p.value()
        p.require("one_use", scores)
        scores = p.result(p.op("ait.add", [scores, m] if mask == "mask_1" else [m, scores]))
        p.require("broadcasts_to", m, products)
    softmax = p.op("ait.softmax", [scores])
    root = p.op("ait.bmm", [p.result(softmax), v], {"layout": "rrr"})
    p.require("one_use", scores)
    p.require("one_use", p.result(softmax))
    p.require("no_region", first)
    p.require("no_region", root)
    p.require("normalises_last_dim", softmax)
    p.require("has_rank", q, rank)
    p.require("at_most", q, -1, MAX_HEAD_SIZE)
    p.require("at_most", v, -1, MAX_HEAD_SIZE)
    p.require("same_batch", q, k)
    p.require("same_batch", q, v)

    operands = [q, k, v] if m is None else [q, k, v, m]
    if rank == 3:
        operands = [p.native("with_heads", x, results=[p.VALUE]) for x in operands]
    if constant is None:
        factor = p.attr(FloatAttr(1.0, f64))
    else:
        factor = p.native("reciprocal" if "div" in scale else "number", constant, results=[p.ATTRIBUTE])
    attention = p.new("ait.attention", operands, {"scale": factor})
    if rank == 3:
        p.replace(root, "like", attention, root)
    else:
        p.replace(root, attention)


FEW_ROWS = 64
"""Up to so many rows of q, a copy of k and v costs about as much as attention itself. The kernels for more rows, which
read k and v many times, take them in one piece only."""


@pattern(over=(False, True))
def attention_in_pieces(p: PatternBuilder, masked: bool) -> None:
    """attention of few rows over concat(k, k1) and concat(v, v1) reads the pieces where they lie"""
    q, k, k1, v, v1 = p.values(5)
    keys, values = (p.result(p.op("ait.concat", pieces, {"dim": 2})) for pieces in ([k, k1], [v, v1]))
    root = p.op("ait.attention", [q, keys, values, *(p.values(1) if masked else [])])
    p.require("at_most", q, 2, FEW_ROWS)
    p.require("same_rows", k, v)
    p.require("one_use", keys)
    p.require("one_use", values)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "in_pieces", root, k, v, k1, v1)


ATTENTION = patterns(softmax_attention)
PIECES = patterns(attention_in_pieces)
