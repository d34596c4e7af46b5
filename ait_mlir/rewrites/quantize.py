"""Numbers with a scale that are read and stored again."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import f8E5M2
from ait_mlir.dialects.ait.quantize import QuantizeOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


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


@pattern()
def quantized_in_groups(p: PatternBuilder) -> None:
    """quantize(x, scale) with a scale for each group along rows = quantize(x, scale) of rows of the size of a group

    Loops compute such scales together with the numbers.
    """
    root = p.op("ait.quantize", [p.rest()])
    p.require("has_groups_along_rows", root)
    p.replace(root, "quantized_by_group", root)


STORED = patterns(stored_again)
GROUPS = patterns(quantized_in_groups)


# ** constraints and natives **


@constraint
def has_groups_along_rows(op: QuantizeOp) -> bool:
    """There is one scale for each group of numbers along the last dim, and all groups have the same size."""
    block = op.block()
    if block is None or op.zero is not None or any(size.as_int() != 1 for size in block[:-1]):
        return False
    size, last = block[-1].as_int(), tensor_type(op.input).dims[-1]
    return size is not None and size > 1 and last.as_int() != size and scope_of(op).divisible(last, size)


@native
def quantized_by_group(r: Rewriter, op: QuantizeOp) -> Operation:
    """The same numbers, with a dim for the groups of a row and one for the numbers of a group."""
    block, t = op.block(), tensor_type(op.output)
    assert block is not None, "quantized_by_group needs has_groups_along_rows"
    *rows, last = t.dims
    groups = last // block[-1]
    x, scale = r.reshape(op.input, [*rows, groups, block[-1]]), r.reshape(op.scale, [*rows, groups, 1])
    made = r.reshape(r.put(QuantizeOp(x, scale, t.element_type)), t.dims).owner
    assert isinstance(made, Operation)
    return made


@constraint
def scaled_alike(a: Operation, b: Operation) -> bool:
    """Both have the same scale, zero point and blocks."""
    return tuple(a.operands)[1:] == tuple(b.operands)[1:] and a.properties == b.properties


@constraint
def has_no_infinity(value: SSAValue) -> bool:
    """The element type has no infinity."""
    return tensor_type(value).element_type != f8E5M2
