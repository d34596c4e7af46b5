"""Products of stored numbers: integers and floats of 8 bits are multiplied as they are stored, and scales come behind
the sums."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f16, f64
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.compositions.contraction import block_scaled_product, centred_product, for_columns
from ait_mlir.dialects.ait.dtypes import accumulator_type, integer_range, is_byte, is_float8
from ait_mlir.dialects.ait.gemm import ContractionOp, GemmOp
from ait_mlir.dialects.ait.quantize import DequantizeOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

LARGEST_SUM = 2**31 - 1
GROUP = 128
"""The numbers along k that have one scale, in products with scales of blocks: those that tensor cores add at once."""
NARROWEST = 32
"""The columns of the narrowest tile of a kernel with scales of blocks."""


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


@pattern()
def product_of_floats(p: PatternBuilder) -> None:
    """dequantize(q, s) @ dequantize(r, t) = (q @ r) * s * t, of floats of 8 bits with scales that are equal along k"""
    first, second = p.op("ait.dequantize", [p.rest()]), p.op("ait.dequantize", [p.rest()])
    root = p.op(operands=[p.result(first), p.result(second)], trait="AffineOperands")
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("keeps_rows_of_first", root)
    p.require("sums_in_f32", root)
    for position, operand in enumerate((first, second)):
        p.require("stores_float8", operand)
        p.require("scales_across", root, operand, position)
    p.replace(root, "product_of_bytes_scaled", root, first, second)


@pattern()
def product_of_blocks(p: PatternBuilder) -> None:
    """dequantize(q, s) @ dequantize(r, t)^T sums q @ r^T times the scales of each group along k, of floats of 8 bits
    with scales of groups of 128 along k

    The scales of r may also be those of blocks of its rows.
    """
    first, second = p.op("ait.dequantize", [p.rest()]), p.op("ait.dequantize", [p.rest()])
    root = p.op("ait.gemm", [p.result(first), p.result(second)], {"layout": "rcr"})
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("sums_in_f32", root)
    for operand in (first, second):
        p.require("stores_float8", operand)
    p.require("scales_groups_along_k", root, first, second)
    p.replace(root, "product_of_blocks_scaled", root, first, second)


@pattern()
def product_along_k(p: PatternBuilder) -> None:
    """A product of 8-bit floats reads operands whose rows lie along k, which is all that tensor cores multiply."""
    root = p.op(operands=[p.rest()], trait="AffineOperands")
    p.require("multiplies_float8", root)
    p.require("no_attribute", root, "kernel")
    p.require("is_not_along_k", root)
    p.replace(root, "turned_along_k", root)


@pattern()
def product_of_widened(p: PatternBuilder) -> None:
    """q @ r = cast(q) @ cast(r), for 8-bit floats cast to f16, which represents each of their values exactly"""
    root = p.op(operands=[p.rest()], trait="AffineOperands")
    p.require("multiplies_float8", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "product_in_f16", root)


STORED = patterns(product_of_stored)
FLOATS = patterns(product_of_floats, product_of_blocks, product_along_k)
WIDENED = patterns(product_of_widened)


# ** constraints and natives **


@constraint
def stores_bytes(op: DequantizeOp) -> bool:
    """The stored numbers are integers of 8 bits."""
    return is_byte(tensor_type(op.input).element_type)


@constraint
def stores_float8(op: DequantizeOp) -> bool:
    """The stored numbers are floats of 8 bits."""
    return is_float8(tensor_type(op.input).element_type)


@constraint
def sums_in_f32(root: ContractionOp) -> bool:
    """The product is not one in f64."""
    return tensor_type(root.output).element_type != f64


@constraint
def multiplies_float8(root: ContractionOp) -> bool:
    """The operands are floats of 8 bits."""
    return is_float8(tensor_type(root.a).element_type)


@constraint
def is_not_along_k(root: ContractionOp) -> bool:
    """An operand is stored so that its rows do not lie along k."""
    return root.layout.data[:2] != "rc"


@constraint
def keeps_rows_of_first(root: ContractionOp) -> bool:
    """The first operand and the result are stored by rows."""
    return root.layout.data[0] == root.layout.data[2] == "r"


@constraint
def scales_across(root: ContractionOp, op: DequantizeOp, position: IntegerAttr) -> bool:
    """The scale and the zero point of an operand broadcast to it and are equal along k. They do if all their blocks are
    one number, or whole."""
    axis = root.matrix_axes(position.value.data)[1 - position.value.data]
    given = [tensor_type(v).dims for v in (op.scale, op.zero) if v is not None]
    scope, sizes = scope_of(root), zip(op.block() or (), tensor_type(op.input).dims, strict=False)
    broadcasts = all(size.as_int() == 1 or scope.equal(size, dim) for size, dim in sizes)
    return broadcasts and all(len(dims) < -axis or dims[axis].as_int() == 1 for dims in given)


@constraint
def scales_groups_along_k(root: GemmOp, first: DequantizeOp, second: DequantizeOp) -> bool:
    """Both scales are for groups of 128 elements along k, and rows start at multiples of 16 bytes.

    The first operand has scales for each row; the second operand may have one for a block of rows, which must be a
    multiple of the narrowest tile of the kernels.
    """
    rows, blocks = first.block(), second.block()
    if rows is None or blocks is None or any(size.as_int() != 1 for size in rows[:-1]):
        return False
    is_group = rows[-1].as_int() == blocks[-1].as_int() == GROUP
    return is_group and (blocks[0].as_int() or 1) % NARROWEST == 0 and scope_of(root).divisible(root.split_a()[2], 16)


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


@native
def product_of_blocks_scaled(r: Rewriter, root: GemmOp, first: DequantizeOp, second: DequantizeOp) -> Operation:
    """The product of the stored numbers with the scales of both."""
    blocks, element = second.block(), tensor_type(root.output).element_type
    block = None if blocks is None else blocks[0].as_int()
    assert block is not None, "product_of_blocks_scaled needs scales_groups_along_k"
    made = block_scaled_product(r, first.input, second.input, first.scale, second.scale, GROUP, block, element)
    assert isinstance(made.owner, Operation)
    return made.owner


@native
def turned_along_k(r: Rewriter, root: ContractionOp) -> Operation:
    """The product with operands whose rows lie along k."""

    def turned(value: SSAValue) -> SSAValue:
        rank = tensor_type(value).rank
        return r.permute(value, [*range(rank - 2), rank - 1, rank - 2])

    layout = root.layout.data
    a = turned(root.a) if layout[0] == "c" else root.a
    b = turned(root.b) if layout[1] == "r" else root.b
    properties = root.properties | {"layout": StringAttr(f"rc{layout[2]}")}
    return r.create(
        type(root), [a, b, *root.operands[2:]], root.result_types, properties, [root.detach_region(root.epilogue)]
    )


@native
def product_in_f16(r: Rewriter, root: ContractionOp) -> Operation:
    """The product of the operands in f16, with the same sums in f32."""
    region = root.detach_region(root.epilogue)
    if not region.blocks:
        block = Block(arg_types=[accumulator_type(f16)])
        block.add_op(YieldOp(block.args[0]))
        region = Region(block)
    operands = [r.cast(root.a, f16), r.cast(root.b, f16), *root.operands[2:]]
    return r.create(type(root), operands, root.result_types, root.properties, [region])
