"""Matrix products of one input with several params become one, the biases of its parts one add; what alone reads both
halves of a product becomes its epilogue."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.epilogue import MAX_OPERANDS


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


@pattern(over=(0, 1))
def gated_product(p: PatternBuilder, first: int) -> None:
    """f(split(x @ w)[0], split(x @ w)[1]) = gated_gemm(x, w): silu(gate) * up, with both sums at hand"""
    product = p.op("ait.gemm", p.values(2))
    halves = p.op("ait.split", [p.result(product)], results=2)
    root = p.op("ait.fused_elementwise", [p.result(halves, first), p.rest()])
    p.require("one_use", p.result(product))
    p.require("reads_once", root, p.result(halves, 0))
    p.require("reads_once", root, p.result(halves, 1))
    p.require("along_last_dim", halves)
    p.require("same_type", p.result(halves, 0), p.result(halves, 1))
    p.require("same_shape", p.result(root), p.result(halves, 0))
    p.require("is_floating", p.result(root))
    p.require("stores_rows", product)
    p.require("no_region", product)
    p.require("no_attribute", product, "kernel")
    p.require("no_attribute", root, "kernel")
    p.require("has_operands", root, MAX_OPERANDS)  # a and b for the halves
    p.replace(root, "gate_product", product, halves, root)


PARALLEL_GEMMS = patterns(parallel_gemms, bias_of_parts)
GATED_PRODUCTS = patterns(gated_product)
