"""A residual add that feeds a norm is computed by the norm."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern(over=(0, 1))
def residual_norm(p: PatternBuilder, position: int) -> None:
    """layer_norm(x + r): the sum is the norm's prologue and, where others use it, its second result"""
    x, r = p.values(2)
    add = p.op("ait.add", [r, x] if position else [x, r])
    total = p.result(add)
    root = p.op("ait.layer_norm", [total, p.rest()])
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("same_type", x, total)
    p.require("is_no_splat", x)
    p.require("users_follow", total, root)
    p.apply(root, "add_to_prologue", x, r, add, root)


NORM = patterns(residual_norm)
