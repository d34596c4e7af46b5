"""Numbers with a scale that are read and stored again."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import f8E5M2
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint


@pattern()
def stored_again(p: PatternBuilder) -> None:
    """quantize(dequantize(q, scale), scale) = q, with one zero point and blocks of one size; an infinity would become
    the largest number"""
    q = p.value()
    values = p.op("ait.dequantize", [q, p.rest()])
    root = p.op("ait.quantize", [p.result(values), p.rest()])
    p.require("same_type", p.result(root), q)
    p.require("scaled_alike", values, root)
    p.require("has_no_infinity", q)
    p.replace(root, q)


STORED = patterns(stored_again)


# ** constraints **


@constraint
def scaled_alike(a: Operation, b: Operation) -> bool:
    """Both have the same scale, zero point and blocks."""
    return tuple(a.operands)[1:] == tuple(b.operands)[1:] and a.properties == b.properties


@constraint
def has_no_infinity(value: SSAValue) -> bool:
    """The element type has no infinity."""
    return tensor_type(value).element_type != f8E5M2
