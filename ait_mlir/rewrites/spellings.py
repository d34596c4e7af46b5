"""Norms as models spell them out, as the one op that they are."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern()
def rms_norm_of_mean(p: PatternBuilder) -> None:
    """x * rsqrt(mean(x * x) + eps) = rms_norm(x)"""
    x, eps = p.values(2)
    square = p.result(p.op("ait.mul", [x, x]))
    mean = p.op("ait.reduce", [square], {"kind": StringAttr("mean")})
    kept = p.result(p.op("ait.reshape", [p.result(mean)]))
    inverse = p.op("ait.rsqrt", [p.result(p.op("ait.add", [kept, eps]))])
    root = p.op("ait.mul", [x, p.result(inverse)])
    p.require("reduces_last_dim", mean)
    p.require("is_row_factor", kept, x)
    p.require("is_nonnegative_splat", eps)
    p.require("same_type", p.result(root), x)
    p.replace(root, "rms_norm", x, eps)


@pattern(over=(0, 1))
def scale_of_rms_norm(p: PatternBuilder, position: int) -> None:
    """rms_norm(x) * weight: the norm scales, too"""
    weight = p.value()
    norm = p.op("ait.rms_norm", [p.value()], {"axes": IntegerAttr(1, i64)})
    y = p.result(norm)
    root = p.op("ait.mul", [weight, y] if position else [y, weight])
    p.require("only_user", y, root)
    p.require("is_row_of", weight, y)
    p.require("no_attribute", norm, "kernel")
    p.replace(root, "scale_norm", norm, weight)


SPELLINGS = patterns(rms_norm_of_mean, scale_of_rms_norm)
