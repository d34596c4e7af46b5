"""Norms and products as models spell them out, as the one op that they are."""

from __future__ import annotations

from itertools import product

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


@pattern(over=product(("rcr", "rrr"), ("no_bias", "bias")))
def product_of_flat_rows(p: PatternBuilder, layout: str, bias: str) -> None:
    """reshape(reshape(x) @ w + b) = x @ w + b, where the reshapes merge the leading dims and part them again"""
    x, w, b = p.value(), p.value(), None
    flat = p.result(p.op("ait.reshape", [x]))
    gemm = p.op("ait.gemm", [flat, w], {"layout": layout})
    rows = p.result(gemm)
    p.require("one_use", rows)
    if bias == "bias":
        b = p.value()
        rows = p.result(p.op("ait.add", [rows, b]))
        p.require("is_row_of", b, rows)
        p.require("one_use", rows)
    root = p.op("ait.reshape", [rows])
    p.require("same_last_dim", x, flat)
    p.require("same_rows", p.result(root), x)
    p.require("no_region", gemm)
    p.require("no_attribute", gemm, "kernel")
    whole = p.native("gemm_of_rows", gemm, x)
    p.replace(root, whole if b is None else p.new("ait.add", [p.result(whole), b]))


@pattern(over=("gemm", "bmm"))
def product_of_column_and_row(p: PatternBuilder, mnemonic: str) -> None:
    """x @ y = x * y, where x is a column and y a row: the angles of a rotation"""
    x, y = p.values(2)
    root = p.op(f"ait.{mnemonic}", [x, y], {"layout": "rrr"})
    p.require("is_single", x, -1)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, p.new("ait.mul", [x, y]))


@pattern()
def slice_of_norm(p: PatternBuilder) -> None:
    """slice(norm(x)) = norm(slice(x)), of whole rows"""
    norm = p.op(trait="Norm")
    y = p.result(norm)
    root = p.op("ait.slice", [y])
    p.require("one_use", y)
    p.require("no_region", norm)
    p.require("keeps_rows_whole", root, norm)
    p.require("no_attribute", norm, "kernel")
    p.replace(root, "norm_of_slice", norm, root)


SPELLINGS = patterns(
    rms_norm_of_mean, scale_of_rms_norm, product_of_flat_rows, product_of_column_and_row, slice_of_norm
)
