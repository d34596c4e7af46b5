"""Matrix products of one input with several params become one, the biases of its parts one add."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern()
def parallel_gemms(p: PatternBuilder) -> None:
    """gemm(x, w0), gemm(x, w1) = split(gemm(x, concat(w0, w1))): query, key and value as one"""
    root = p.op("ait.gemm", p.values(2))
    p.require("has_parallel_gemms", root)
    p.apply(root, "merge_parallel_gemms", root)


@pattern()
def bias_of_parts(p: PatternBuilder) -> None:
    """split(x)[0] + b0, split(x)[1] + b1 = split(x + concat(b0, b1))"""
    x = p.value()
    root = p.op("ait.split", [x], results=None)
    p.require("one_use", x)
    p.require("each_part_gets_bias", root)
    p.apply(root, "add_before_split", root)


PARALLEL_GEMMS = patterns(parallel_gemms, bias_of_parts)
