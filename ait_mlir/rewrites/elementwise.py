"""Connected elementwise operations become one pass over memory."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern()
def outline(p: PatternBuilder) -> None:
    """Every elementwise operation on tensors becomes a fused_elementwise of one: later passes see one kind of op"""
    root = p.op(trait="Elementwise")
    p.require("is_tensor", p.result(root))
    p.replace(root, "outline_elementwise", root)


@pattern()
def merge_with_producer(p: PatternBuilder) -> None:
    """Two connected ones of the same shape become one; what others use of the first becomes a further result"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("has_producer_to_merge", root)
    p.apply(root, "merge_with_producer", root)


@pattern()
def leading_ones(p: PatternBuilder) -> None:
    """reshape(f(x)) = f(x) where the reshape puts dims of 1 in front, and that is all: operands broadcast over them"""
    inner = p.op("ait.fused_elementwise")
    root = p.op("ait.reshape", [p.result(inner)])
    p.require("one_use", p.result(inner))
    p.require("no_attribute", inner, "kernel")
    p.require("adds_leading_ones", root)
    p.replace(root, "with_result_of", inner, root)


ELEMENTWISE = patterns(outline, leading_ones, merge_with_producer)
