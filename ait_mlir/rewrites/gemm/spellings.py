"""Simplifies two spellings of products in models: a product of flattened rows, and a product of a column and a row."""

from __future__ import annotations

from itertools import product

from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import native


@pattern(over=product(("rcr", "rrr"), ("no_bias", "bias")))
def product_of_flat_rows(p: PatternBuilder, layout: str, bias: str) -> None:
    """reshape(reshape(x) @ w + b) = x @ w + b, where the reshapes merge the leading dims and split them again"""
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
    """x @ y = x * y, where x is a column and y a row, as for the angles of rotary embeddings"""
    x, y = p.values(2)
    root = p.op(f"ait.{mnemonic}", [x, y], {"layout": "rrr"})
    p.require("is_single", x, -1)
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, p.new("ait.mul", [x, y]))


SPELLINGS = patterns(product_of_flat_rows, product_of_column_and_row)


# ** natives **


@native
def gemm_of_rows(r: Rewriter, product: GemmOp, x: SSAValue) -> Operation:
    """The product with x in place of its operand; x has the same rows, arranged in other leading dims."""
    *rows, _ = tensor_type(x).dims
    result = tensor_type(product.output)
    type_ = TensorType.get((*rows, result.dims[-1]), result.element_type)
    return r.create(
        GemmOp, [x, product.operands[1]], [type_], {"layout": product.layout} | rounding(product), [Region()]
    )
