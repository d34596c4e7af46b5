"""Elementwise operations of which neither makes what the other reads in its shape, as one launch.

There are three reasons. Two that read one large tensor read it once. Two that have a tensor in common, however small,
and no launch between them, are a launch less; nothing lives longer for it, as all that moves is views. And what is
small and cheap is computed again by the one operation that reads it, for each element, rather than by a launch.
"""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns

MAX_TOGETHER = 16
"""Operands and results of one launch for two: a thread holds a chunk of each in registers."""

MAX_RECOMPUTED = 4
"""Operations that are computed for each element instead of for each row or column."""


@pattern()
def merge_with_sibling(p: PatternBuilder) -> None:
    """Two of the same shape that read one tensor of it become one, which reads it once: the halves of a rotation"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("has_sibling_to_merge", root)
    p.apply(root, "merge_with_sibling", root)


@pattern()
def merge_with_neighbour(p: PatternBuilder) -> None:
    """Two of the same shape with nothing launched between that read one tensor: query and key, which rotate alike"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("neighbour_has_no_attribute", root, "kernel")
    p.require("neighbour_has_shape", root)
    p.require("shares_elements_with_neighbour", root)
    p.require("accesses_like_neighbour", root)
    p.require("fits_with_neighbour", root, MAX_TOGETHER)
    p.require("is_independent_of_neighbour", root)
    p.apply(root, "merge_with_neighbour", root)


@pattern()
def merge_into_user(p: PatternBuilder) -> None:
    """A few instructions on a row or column are done for each element that reads it: the type of token positions"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("user_has_no_attribute", root, "kernel")
    p.require("is_cheap", root, MAX_RECOMPUTED)
    p.require("spares_reads_of_user", root)
    p.require("fits_user", root, MAX_TOGETHER)
    p.apply(root, "merge_into_user", root)


SIBLINGS = patterns(merge_with_sibling, merge_with_neighbour, merge_into_user)
