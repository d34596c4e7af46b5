"""A residual add that feeds a norm is computed by the norm."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.elementwise import AddOp, ClampOp, MulOp
from ait_mlir.dialects.ait.norm import NormOp, RmsNormOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import SliceOp
from ait_mlir.dims import const
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of, splat
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.regions import RegionGrower, take_regions


@pattern(over=(0, 1))
def residual_norm(p: PatternBuilder, position: int) -> None:
    """norm(x + r): the norm's prologue computes the sum, and yields it as another result if the sum has other users"""
    x, r = p.values(2)
    total = p.result(p.op("ait.add", [r, x] if position else [x, r]))
    root = p.op(operands=[total, p.rest()], trait="Norm", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("same_type", x, total)
    p.require("is_no_splat", x)
    p.require("read_once", total, root)
    p.require("users_follow", total, root)
    p.apply(root, "add_to_prologue", x, r, total, root)


NORM = patterns(residual_norm)

SHORTEST = 1e-16
"""Smallest lower bound of a length: kernels compute its square in f32."""


# ** norms as models spell them **


@pattern()
def rsqrt_of_sqrt(p: PatternBuilder) -> None:
    """1 / sqrt(x) = rsqrt(x)"""
    one, x = p.values(2)
    root = p.op("ait.div", [one, p.result(p.op("ait.sqrt", [x]))])
    p.require("is_splat", one, IntegerAttr(1, i64))
    p.require("same_type", p.result(root), x)
    p.replace(root, p.new("ait.rsqrt", [x]))


@pattern(over=(("mul", "rsqrt"), ("div", "sqrt")))
def rms_norm_of_mean(p: PatternBuilder, mnemonic: str, root_of: str) -> None:
    """x * rsqrt(mean(x * x) + eps) = x / sqrt(mean(x * x) + eps) = rms_norm(x)"""
    x, eps = p.values(2)
    square = p.result(p.op("ait.mul", [x, x]))
    mean = p.op("ait.reduce", [square], {"kind": StringAttr("mean")})
    kept = p.result(p.op("ait.reshape", [p.result(mean)]))
    length = p.op(f"ait.{root_of}", [p.result(p.op("ait.add", [kept, eps]))])
    root = p.op(f"ait.{mnemonic}", [x, p.result(length)])
    p.require("reduces_last_dim", mean)
    p.require("is_row_factor", kept, x)
    p.require("is_nonnegative_splat", eps)
    p.require("same_type", p.result(root), x)
    p.replace(root, "rms_norm", x, eps)


LENGTHS = (
    ("reshape", "sqrt", "clamp"),
    ("sqrt", "reshape", "clamp"),
    ("sqrt", "clamp", "reshape"),
    ("reshape", "sqrt"),
    ("sqrt", "reshape"),
)
"""The operations, in order, by which models compute a length from the sum of squares."""


@pattern(over=LENGTHS)
def norm_to_length_one(p: PatternBuilder, *steps: str) -> None:
    """x / max(sqrt(sum(x * x)), e) = rms_norm(x) / sqrt(n), where the mean of the squares is at least e * e / n"""
    x = p.value()
    square = p.result(p.op("ait.mul", [x, x]))
    total = p.op("ait.reduce", [square], {"kind": StringAttr("sum")})
    length, clamped = p.result(total), None
    for step in steps:
        op = p.op(f"ait.{step}", [length])
        length, clamped = p.result(op), op if step == "clamp" else clamped
    root = p.op("ait.div", [x, length])
    p.require("reduces_last_dim", total)
    p.require("is_row_factor", length, x)
    p.require("has_known_last_dim", x)
    if clamped is None:
        p.replace(root, "length_one", x)
    else:
        p.require("bounds_length", clamped)
        p.replace(root, "length_one_bounded", x, clamped)


@pattern(over=(0, 1))
def scale_of_rms_norm(p: PatternBuilder, position: int) -> None:
    """rms_norm(x) * weight = rms_norm(x, weight)"""
    weight = p.value()
    norm = p.op("ait.rms_norm", [p.value()], {"axes": IntegerAttr(1, i64)})
    y = p.result(norm)
    root = p.op("ait.mul", [weight, y] if position else [y, weight])
    p.require("only_user", y, root)
    p.require("is_row_of", weight, y)
    p.require("no_region", norm)
    p.require("no_attribute", norm, "kernel")
    p.replace(root, "scale_norm", norm, weight)


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


SPELLINGS = patterns(rsqrt_of_sqrt, rms_norm_of_mean, norm_to_length_one, scale_of_rms_norm, slice_of_norm)


# ** norms and softmax that a model widened **
#
# Kernels compute a row of f16 or bf16 in f32 and round once, when they store it. A model that converts to f32,
# normalises and converts back has the same result. In the reference, however, only the conversion rounds, so the values
# differ. These patterns therefore require an assumption of the importer.


@pattern(over=("softmax", "rms_norm"))
def row_op_of_widened(p: PatternBuilder, mnemonic: str) -> None:
    """cast(f(cast(x))) = f(x), where f computes in the wide type anyway"""
    x = p.value()
    wide = p.result(p.op("ait.cast", [x]))
    inner = p.op(f"ait.{mnemonic}", [wide])
    root = p.op("ait.cast", [p.result(inner)])
    p.require("is_compute_type_of", wide, x)
    p.require("same_type", p.result(root), x)
    p.require("one_use", p.result(inner))
    if mnemonic != "softmax":
        p.require("no_region", inner)
    p.require("no_attribute", inner, "kernel")
    p.replace(root, "on_narrow", inner, x)


NARROW = patterns(row_op_of_widened)


# ** constraints and natives **


@constraint
def read_once(value: SSAValue, op: Operation) -> bool:
    """The operation has the value as one operand only."""
    return sum(operand is value for operand in op.operands) == 1


@native
def add_to_prologue(r: Rewriter, x: SSAValue, residual: SSAValue, total: SSAValue, root: NormOp) -> None:
    """Let a norm read x and start its prologue with x + residual; if the sum has other users, it becomes another
    result.

    `total` is that sum, the norm's input before. A norm without a prologue gets one.
    """
    extras = list(root.prologue_operands)
    block = prologue_of(root, element_type_of(x))
    argument = block.args[0]
    grower = RegionGrower(block, extras, first_argument=1)
    grower.scalars[x] = argument
    other = grower.scalar(residual, first=True)
    add = AddOp.create(operands=[argument, other], result_types=[argument.type])
    add.location = root.location
    place = other.owner.next_op if isinstance(other.owner, Operation) else block.first_op
    assert place is not None, "a prologue ends with a yield"
    argument.replace_uses_with_if(add.results[0], lambda use: use.operation is not add)
    block.insert_op_before(add, place)

    types = [result.type for result in root.results]
    others = [use for use in total.uses if use.operation is not root]
    if others:
        grower.finish([*grower.yields(), add.results[0]])
        types.append(total.type)
    scale_and_bias = [value for value in (root.scale, root.bias) if value is not None]
    sizes = [1, int(root.scale is not None), int(root.bias is not None), len(grower.operands)]
    sizes.append(len(root.epilogue_operands))
    attributes = root.properties | root.attributes | {"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}
    operands = [x, *scale_and_bias, *grower.operands, *root.epilogue_operands]
    new = r.create(type(root), operands, types, attributes, [Region(block), take_regions(root)[1]])
    for use in others:
        r.push(use.operation)
        use.operation.operands[use.index] = new.results[-1]
    r.replace(root, new.results[: len(root.results)])


def prologue_of(norm: NormOp, element_type: Attribute) -> Block:
    """The block of a norm's prologue, taken from it, or a new one that yields its only argument."""
    if norm.prologue.blocks:
        return norm.prologue.detach_block(norm.prologue.block)
    block = Block(arg_types=[compute_type(element_type)])
    block.add_op(YieldOp(block.args[0]))
    return block


# ** whole rows **


@constraint
def keeps_rows_whole(op: SliceOp, norm: NormOp) -> bool:
    """The slice takes all of each row that the norm normalises."""
    axes = norm.axes.value.data
    part, rows = tensor_type(op.output).dims[-axes:], tensor_type(norm.input).dims[-axes:]
    return same_dims(part, rows, scope_of(op))


@native
def norm_of_slice(r: Rewriter, norm: NormOp, op: SliceOp) -> Operation:
    """The norm applied to the slice of its input."""
    rows = tensor_type(norm.input)
    type_ = TensorType.get(tensor_type(op.output).dims, rows.element_type)
    part = r.create(SliceOp, [norm.input], [type_], {"offsets": op.offsets}).results[0]
    attributes = norm.properties | norm.attributes
    return r.create(type(norm), [part, *norm.operands[1:]], [op.output.type], attributes, take_regions(norm))


@native
def on_narrow(r: Rewriter, op: Operation, x: SSAValue) -> Operation:
    """The same norm or softmax on x, with a result of x's type."""
    regions = [Region() for _ in op.regions]
    return r.create(type(op), [x], [x.type], op.properties | op.attributes, regions)


@constraint
def reduces_last_dim(op: ReduceOp) -> bool:
    """A reduction over the last dim only."""
    return op.axes() == (tensor_type(op.input).rank - 1,)


@constraint
def is_row_factor(value: SSAValue, rows: SSAValue) -> bool:
    """The value has one element for each row of the other: its shape with 1 for the last dim."""
    if not isinstance(value.type, TensorType) or not isinstance(rows.type, TensorType):
        return False
    scope = scope_of(value.owner if isinstance(value.owner, Operation) else None)
    return same_dims(tensor_type(value).dims, (*tensor_type(rows).dims[:-1], const(1)), scope)


@constraint
def is_row_of(value: SSAValue, rows: SSAValue) -> bool:
    """The value is a tensor of one dim, equal to the last dim of `rows`. False for scalars of a region."""
    if not isinstance(value.type, TensorType) or not isinstance(rows.type, TensorType):
        return False
    scope = scope_of(rows.owner if isinstance(rows.owner, Operation) else None)
    return same_dims(tensor_type(value).dims, tensor_type(rows).dims[-1:], scope)


@constraint
def is_nonnegative_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` with one number, at least 0, for all elements."""
    number = splat(value)
    return number is not None and number >= 0


@native
def rms_norm(r: Rewriter, x: SSAValue, eps: SSAValue) -> Operation:
    """The norm of x over its last dim, with the number of a splat constant added to the mean of the squares."""
    number = splat(eps)
    assert number is not None, "rms_norm needs is_nonnegative_splat"
    return _rms_norm(r, x, float(number), Region(), bounded=False)


def _rms_norm(r: Rewriter, x: SSAValue, eps: float, epilogue: Region, bounded: bool) -> Operation:
    properties: dict[str, Attribute] = {
        "axes": IntegerAttr(1, i64),
        "eps": FloatAttr(eps, f64),
        "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 0, 0, 0, 0]),
    }
    if bounded:
        properties["bounded"] = UnitAttr()
    return r.create(RmsNormOp, [x], [x.type], properties, [Region(), epilogue])


@constraint
def has_known_last_dim(value: SSAValue) -> bool:
    """The last dim of the tensor is a number, not 0."""
    return isinstance(value.type, TensorType) and value.type.rank > 0 and bool(value.type.dims[-1].as_int())


@constraint
def bounds_length(op: ClampOp) -> bool:
    """The clamp has only a lower bound: 0, which no length is below, or one so large that its square divided by the row
    length is not 0 in f32."""
    low, high = op.bounds
    return low is not None and high is None and (low == 0 or low >= SHORTEST)


@native
def length_one(r: Rewriter, x: SSAValue) -> Operation:
    """x divided by its length along the last dim; NaN where the length is 0."""
    return _to_length_one(r, x, 0.0)


@native
def length_one_bounded(r: Rewriter, x: SSAValue, clamp: ClampOp) -> Operation:
    """x divided by its length along the last dim, or by the clamp's lower bound where the length is smaller."""
    low, _ = clamp.bounds
    assert low is not None, "length_one_bounded needs bounds_length"
    return _to_length_one(r, x, float(low))


def _to_length_one(r: Rewriter, x: SSAValue, least: float) -> Operation:
    count = tensor_type(x).dims[-1].as_int()
    assert count, "a norm to length one needs has_known_last_dim"
    computed = compute_type(element_type_of(x))
    epilogue = Region(Block(arg_types=[computed]))
    block = epilogue.block
    factor = ConstantOp(count**-0.5, computed)
    scaled = MulOp.create(operands=[block.args[0], factor.results[0]], result_types=[computed])
    block.add_ops([factor, scaled, YieldOp(scaled.results[0])])
    return _rms_norm(r, x, least * least / count, epilogue, bounded=True)


@native
def scale_norm(r: Rewriter, norm: RmsNormOp, weight: SSAValue) -> Operation:
    """The norm with a scale."""
    sizes = DenseArrayBase.from_list(i32, [1, 1, 0, 0, 0])
    attributes = norm.properties | norm.attributes | {"operandSegmentSizes": sizes}
    return r.create(RmsNormOp, [norm.input, weight], list(norm.result_types), attributes, take_regions(norm))
