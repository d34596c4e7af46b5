"""Products that store results in 8 bits: their epilogue quantises, if the scale is known before the result."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR, is_byte, is_float8
from ait_mlir.dialects.ait.elementwise import AddOp, CastOp, ClampOp, DivOp, ElementwiseOp, RoundOp
from ait_mlir.dialects.ait.quantize import QuantizeOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.gemm.epilogue import MAX_OPERANDS, take_epilogue, with_grown


@pattern()
def quantized_result(p: PatternBuilder) -> None:
    """quantize(f(x @ w), scale) becomes an epilogue of x @ w, where the scale broadcasts to the product

    The scale is known before the product, because nothing else reads the product.
    """
    acc = p.op(trait="HasEpilogue")
    root = p.op("ait.quantize", [p.result(acc), p.rest()])
    p.require("only_user", p.result(acc), root)
    p.require("stores_bytes_of", acc, root)
    p.require("scale_broadcasts", root)
    p.require("no_attribute", acc, "kernel")
    p.require("operands_fit", acc, root, MAX_OPERANDS)
    p.require("stays_in_batch_loops", acc, root)
    p.replace(root, "quantized_in_epilogue", acc, root)


@pattern()
def quantized_before_reshape(p: PatternBuilder) -> None:
    """quantize(reshape(x), scale) = reshape(quantize(x, scale)) with one scale, where a product makes x"""
    x = p.value()
    view = p.op("ait.reshape", [x])
    root = p.op("ait.quantize", [p.result(view), p.rest()])
    p.require("only_user", p.result(view), root)
    p.require("is_result_of_product", x)
    p.require("scale_is_one_number", root)
    p.replace(root, "quantized_in_shape_of", view, root)


RESULTS = patterns(quantized_result, quantized_before_reshape)


# ** constraints and natives **


@constraint
def stores_bytes_of(op: HasEpilogue, root: QuantizeOp) -> bool:
    """The op has one result, not of f64, and stores numbers of the quantised type: floats or integers of 8 bits."""
    element, source = element_type_of(root.output), element_type_of(root.input)
    return op.STORES_BYTES and len(op.results) == 1 and source != f64 and (is_float8(element) or is_byte(element))


@constraint
def scale_broadcasts(op: QuantizeOp) -> bool:
    """The scale and the zero point broadcast to the values, so that they are operands of an elementwise operation."""
    return op.blocks is None


@constraint
def scale_is_one_number(op: QuantizeOp) -> bool:
    """The scale is one number, and so is the zero point, if there is one."""
    return op.blocks is None and all(tensor_type(v).num_elements().as_int() == 1 for v in op.operands[1:])


@constraint
def is_result_of_product(value: SSAValue) -> bool:
    """A product that stores results of 8 bits makes the value, behind reshapes."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.input
    return isinstance(value.owner, HasEpilogue) and value.owner.STORES_BYTES


@native
def quantized_in_epilogue(r: Rewriter, contraction: HasEpilogue, root: QuantizeOp) -> Operation:
    """The product with the quotient, rounded, at the end of its epilogue."""
    regions, grower = take_epilogue(contraction)

    def widened(tensor: SSAValue) -> SSAValue:
        return grower.cast(grower.scalar(tensor), element_type_of(tensor), f32)

    def put(op: ElementwiseOp) -> SSAValue:
        op.location = root.location
        return grower.add(op).results[0]

    element = element_type_of(root.output)
    value = put(DivOp(grower.scalars[root.input], widened(root.scale)))
    if is_float8(element):
        value = put(ClampOp(value, -BY_IR[element].largest, BY_IR[element].largest))
        value = grower.cast(value, f32, element)
    else:
        value = put(RoundOp(value))
        if root.zero is not None:
            value = put(AddOp(value, widened(root.zero)))
        value = put(CastOp(value, element))
    grower.finish([value])
    return with_grown(r, contraction, regions, grower, root.output)


@native
def quantized_in_shape_of(r: Rewriter, view: ReshapeOp, root: QuantizeOp) -> Operation:
    """The numbers of the operand of a reshape, which are then reshaped."""
    scale, zero = r.reshape(root.scale, ()), None if root.zero is None else r.reshape(root.zero, ())
    made = r.put(QuantizeOp(view.input, scale, element_type_of(root.output), zero))
    reshaped = r.reshape(made, tensor_type(root.output).dims).owner
    assert isinstance(reshaped, Operation)
    return reshaped
