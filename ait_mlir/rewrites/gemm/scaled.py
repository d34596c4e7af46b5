"""Products of stored numbers: integers of 8 bits are multiplied as they are stored, and scales come behind the sums."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ait_mlir.compositions.contraction import centred_product, for_columns
from ait_mlir.dialects.ait.dtypes import integer_range, is_byte
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.quantize import DequantizeOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

LARGEST_SUM = 2**31 - 1


@pattern()
def product_of_stored(p: PatternBuilder) -> None:
    """dequantize(q, s) @ dequantize(r, t) = (q @ r) * s * t, of integers of 8 bits with scales that are equal along k

    Zero points become sums of rows and columns. Those of weights are computed before the run.
    """
    first, second = p.op("ait.dequantize", [p.rest()]), p.op("ait.dequantize", [p.rest()])
    root = p.op(operands=[p.result(first), p.result(second)], trait="AffineOperands")
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("keeps_rows_of_first", root)
    for position, operand in enumerate((first, second)):
        p.require("stores_bytes", operand)
        p.require("scales_across", root, operand, position)
    p.require("sums_fit", root, first, second)
    p.replace(root, "product_of_bytes_scaled", root, first, second)


STORED = patterns(product_of_stored)


# ** constraints and natives **


@constraint
def stores_bytes(op: DequantizeOp) -> bool:
    """The stored numbers are integers of 8 bits."""
    return is_byte(tensor_type(op.input).element_type)


@constraint
def keeps_rows_of_first(root: ContractionOp) -> bool:
    """The first operand and the result are stored by rows."""
    return root.layout.data[0] == root.layout.data[2] == "r"


@constraint
def scales_across(root: ContractionOp, op: DequantizeOp, position: IntegerAttr) -> bool:
    """The scale and the zero point of an operand have no blocks and are equal along k."""
    axis = root.matrix_axes(position.value.data)[1 - position.value.data]
    given = [tensor_type(v).dims for v in (op.scale, op.zero) if v is not None]
    return op.block() is None and all(len(dims) < -axis or dims[axis].as_int() == 1 for dims in given)


@constraint
def sums_fit(root: ContractionOp, first: DequantizeOp, second: DequantizeOp) -> bool:
    """All sums of the product, less the zero points, fit into 32 bits."""
    largest = scope_of(root).bounds(root.split_a()[2])[1]
    for op in (first, second):
        low, high = integer_range(tensor_type(op.input).element_type) or (0, 0)
        largest *= high - low if op.zero is not None else max(-low, high)
    return largest <= LARGEST_SUM


@native
def product_of_bytes_scaled(r: Rewriter, root: ContractionOp, first: DequantizeOp, second: DequantizeOp) -> Operation:
    """The product of the stored numbers, less the zero points, times the scales."""
    rows = root.layout.data[1] == "c"
    scales = first.scale, for_columns(r, second.scale, rows)
    element = tensor_type(root.output).element_type
    owner = centred_product(r, first.input, second.input, first.zero, second.zero, rows, scales, element).owner
    assert isinstance(owner, Operation)
    return owner
