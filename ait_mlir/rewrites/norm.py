"""A residual add that feeds a norm is computed by the norm."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern(over=(0, 1))
def residual_norm(p: PatternBuilder, position: int) -> None:
    """norm(x + r): the norm's prologue starts with the sum, which is a further result where others use it"""
    x, r = p.values(2)
    total = p.result(p.op("ait.add", [r, x] if position else [x, r]))
    root = p.op(operands=[total, p.rest()], trait="Norm", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("same_type", x, total)
    p.require("is_no_splat", x)
    p.require("users_follow", total, root)
    p.apply(root, "add_to_prologue", x, r, total, root)


NORM = patterns(residual_norm)
