"""Products that store results in 8 bits: their epilogue quantises, if the scale is known before the result."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR, is_byte, is_float8
from ait_mlir.dialects.ait.elementwise import AddOp, CastOp, ClampOp, DivOp, ElementwiseOp, RoundOp
from ait_mlir.dialects.ait.quantize import QuantizeOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, SplitOp
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of, splat
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


@pattern()
def quantized_before_permute(p: PatternBuilder) -> None:
    """quantize(permute(x), scale) = permute(quantize(x, scale)) with one scale, where a product makes x"""
    x = p.value()
    view = p.op("ait.permute", [x])
    root = p.op("ait.quantize", [p.result(view), p.rest()])
    p.require("only_user", p.result(view), root)
    p.require("is_result_of_product", x)
    p.require("scale_is_one_number", root)
    p.replace(root, "quantized_in_order_of", view, root)


@pattern()
def quantized_before_split(p: PatternBuilder) -> None:
    """quantize(split(x)[0], scale), quantize(split(x)[1], scale) = split(quantize(x, scale)) with one scale for all
    parts, where a product makes x: query, key and value"""
    x = p.value()
    root = p.op("ait.split", [x], results=None)
    p.require("one_use", x)
    p.require("is_result_of_product", x)
    p.require("parts_are_quantized_alike", root)
    p.apply(root, "quantize_before_split", root)


RESULTS = patterns(quantized_result, quantized_before_reshape, quantized_before_permute, quantized_before_split)


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
    """A product that stores results of 8 bits makes the value, or that of which it is a view or a part."""
    while isinstance(value.owner, ReshapeOp | PermuteOp | SplitOp):
        value = value.owner.operands[0]
    return isinstance(value.owner, HasEpilogue) and value.owner.STORES_BYTES


def quantized_parts(split: SplitOp) -> list[QuantizeOp] | None:
    """For each part of a split, the op that is its only user and quantises it; None if another op reads a part."""
    found = [part.get_user_of_unique_use() for part in split.results]
    quantized = [op for op in found if isinstance(op, QuantizeOp)]
    return quantized if len(quantized) == len(found) and all(op.parent is split.parent for op in quantized) else None


@constraint
def parts_are_quantized_alike(split: SplitOp) -> bool:
    """Every part is only read by a quantize to one type with one known scale, the same for all, and no zero point."""
    quantized = quantized_parts(split)
    if not quantized or any(op.block() is not None or op.zero is not None for op in quantized):
        return False
    numbers = {(element_type_of(op.output), element_type_of(op.scale), splat(op.scale)) for op in quantized}
    return len(numbers) == 1 and splat(quantized[0].scale) is not None


@native
def quantize_before_split(r: Rewriter, split: SplitOp) -> None:
    """Replace the quantizes of all parts by one before the split."""
    quantized = quantized_parts(split)
    assert quantized, "quantize_before_split needs parts_are_quantized_alike"
    scale = r.scalar(float(splat(quantized[0].scale) or 0), element_type_of(quantized[0].scale))
    whole = r.put(QuantizeOp(split.operands[0], scale, element_type_of(quantized[0].output)))
    parts = r.create(SplitOp, [whole], [op.output.type for op in quantized], dict(split.properties))
    for op, part in zip(quantized, parts.results, strict=True):
        r.replace(op, [part])
    # The old split has no users left and is dead.
    r.push(split)


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


def quantized_by_one(r: Rewriter, x: SSAValue, root: QuantizeOp) -> SSAValue:
    """x, quantised with the scale and the zero point of another op, which are one number each."""
    number = splat(root.scale)
    scale = r.reshape(root.scale, ()) if number is None else r.scalar(float(number), element_type_of(root.scale))
    zero = None if root.zero is None else r.reshape(root.zero, ())
    return r.put(QuantizeOp(x, scale, element_type_of(root.output), zero))


@native
def quantized_in_shape_of(r: Rewriter, view: ReshapeOp, root: QuantizeOp) -> Operation:
    """The numbers of the operand of a reshape, which are then reshaped."""
    made = quantized_by_one(r, view.input, root)
    reshaped = r.reshape(made, tensor_type(root.output).dims).owner
    assert isinstance(reshaped, Operation)
    return reshaped


@native
def quantized_in_order_of(r: Rewriter, view: PermuteOp, root: QuantizeOp) -> Operation:
    """The numbers of the operand of a permute, which are then permuted."""
    made = quantized_by_one(r, view.input, root)
    return r.create(PermuteOp, [made], [root.output.type], dict(view.properties))
