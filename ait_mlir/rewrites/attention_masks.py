"""Masks of attention as models spell them: scores that are chosen instead of added to, and triangles.

What hides a score is a number far below 0, after which its exponential is 0 whatever the score was. That is not so of
an infinite score, and a row of which every score is hidden gets other weights. No model means either, but the reference
tells them apart, so the importer applies these patterns, whose measure is PyTorch's own error, and no phase does.
"""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern(over=("scores_first", "scores_last"))
def mask_of_where(p: PatternBuilder, order: str) -> None:
    """softmax(where(c, scores, low)) = softmax(scores + where(c, 0, low)): the mask is added"""
    c, scores, low, dim = p.value(), p.value(), p.value(), p.attr()
    first = order == "scores_first"
    chosen = p.result(p.op("ait.where", [c, scores, low] if first else [c, low, scores]))
    root = p.op("ait.softmax", [chosen], {"dim": dim})
    p.require("one_use", chosen)
    p.require("same_type", chosen, scores)
    p.require("is_of_products", scores)
    p.require("is_hiding_splat", low)
    zero = p.native("zero_like", low, results=[p.VALUE])
    mask = p.result(p.new("ait.where", [c, zero, low] if first else [c, low, zero]))
    masked = p.result(p.new("ait.add", [scores, mask]))
    p.replace(root, p.new("ait.softmax", [masked], {"dim": dim}))


@pattern(over=("seen", "hidden"))
def causal_of_triangle(p: PatternBuilder, what: str) -> None:
    """attention with the mask where(column <= row, m, low) = causal attention with the mask m"""
    q, k, v, a, b, m, low = p.values(7)
    condition = p.op("ait.compare", [a, b], {"predicate": "ge"})
    chosen = [m, low] if what == "seen" else [low, m]
    mask = p.result(p.op("ait.where", [p.result(condition), *chosen]))
    root = p.op("ait.attention", [q, k, v, mask])
    p.require("is_hiding_splat", low)
    p.require("is_up_to_diagonal" if what == "seen" else "is_behind_diagonal", condition, root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "causal_attention", root, m)


MASKS = patterns(mask_of_where)
TRIANGLES = patterns(causal_of_triangle)
