"""Heads of keys and values that models repeat for several heads of queries."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


def repeated(p: PatternBuilder, x: SSAValue) -> SSAValue:
    """The match of x with each of its heads several times in turn."""
    single = p.result(p.op("ait.reshape", [x]))
    several = p.result(p.op("ait.expand", [single]))
    merged = p.result(p.op("ait.reshape", [several]))
    p.require("repeats_heads", x, single, several, merged)
    return merged


@pattern(over=("no_mask", "mask"))
def shared_heads(p: PatternBuilder, mask: str) -> None:
    """attention(q, repeated(k), repeated(v)) = attention(q, k, v): neighbouring heads of q share one of k and v"""
    q, k, v = p.values(3)
    root = p.op("ait.attention", [q, repeated(p, k), repeated(p, v), *([p.value()] if mask == "mask" else [])])
    p.require("same_rows", k, v)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "attention_to", root, k, v)


HEADS = patterns(shared_heads)
