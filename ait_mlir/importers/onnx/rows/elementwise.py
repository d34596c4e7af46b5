"""Arithmetic, activations, comparisons and conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import f32, f64, i1, i32
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import INTEGERS, Affine, Mask, as_mask, compared, masked_or_spread, spread
from ait_mlir.compositions import functions
from ait_mlir.compositions.bits import reinterpreted
from ait_mlir.compositions.index import broadcast_shapes
from ait_mlir.compositions.ranges import counted
from ait_mlir.dialects.ait.dtypes import LARGEST, Float8, compute_type, f8E8M0FNU, i4, is_float, ui4
from ait_mlir.dialects.ait.elementwise import BitcastOp, BitXorOp, PowOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, Tensor, element_of, shape_of
from ait_mlir.importers.onnx.known import Known
from ait_mlir.importers.onnx.rows.common import broadcast, formula, met

Function = Callable[[Call, SSAValue], SSAValue]


def unary(op: str) -> Row:
    """A row for one op."""
    return lambda c: c.w.pointwise(op, c.tensor(0))


def compute(function: Function) -> Row:
    """A row for several ops on one tensor."""
    return lambda c: function(c, c.tensor(0))


def binary(op: str) -> Row:
    """A row for one op on two tensors, which broadcast."""
    return lambda c: c.w.pointwise(op, *broadcast(c))


def several(op: str) -> Row:
    """A row for an op that combines any number of tensors."""

    def row(c: Call) -> SSAValue:
        first, *rest = broadcast(c)
        for value in rest:
            first = c.w.pointwise(op, first, value)
        return first

    return row


def mean(c: Call) -> SSAValue:
    return c.w.div(several("add")(c), len(c.inputs))


def bits(combine: Callable[..., SSAValue]) -> Row:
    """A row for an operation on bits or booleans."""
    return lambda c: combine(c.w, *broadcast(c))


def compare(predicate: str) -> Row:
    """A row for a comparison; of formulas of indices, a mask."""

    def row(c: Call) -> Result:
        left, right = (formula(c.value(i)) for i in range(2))
        dims = None if left is None or right is None else met(left.dims, right.dims)
        if left and right and dims is not None and (mask := compared(left, right, predicate, dims)) is not None:
            return mask.proved(c.w.scope)
        a, b = broadcast(c)
        if tensor_type(a).element_type == i1:
            a, b = c.w.cast(a, i32), c.w.cast(b, i32)
        return c.w.compare(predicate, a, b)

    return row


def sum_of(factor: int) -> Row:
    """A row for a sum or a difference; of formulas of indices, a formula."""

    def row(c: Call) -> Result:
        parts = [formula(c.value(i)) for i in range(2)]
        a, b = parts
        if a is not None and b is not None and (isinstance(c.value(0), Affine) or isinstance(c.value(1), Affine)):
            return a.plus(b, factor, broadcast_shapes(a.dims, b.dims))
        return c.w.pointwise("add" if factor == 1 else "sub", *broadcast(c))

    return row


def product_of(c: Call) -> Result:
    """A row for a product; of a formula of indices and a number, a formula."""
    for i, j in ((0, 1), (1, 0)):
        positions, factor = c.value(i), formula(c.value(j))
        if isinstance(positions, Affine) and factor is not None and not factor.moving_axes():
            return positions.broadcast(broadcast_shapes(positions.dims, factor.dims)).times(factor.offset)
    return binary("mul")(c)


def divide(c: Call) -> SSAValue:
    return c.w.div(*broadcast(c))


def modulo(c: Call) -> SSAValue:
    """The remainder with the sign of the divisor, or with `fmod` of the dividend."""
    a, b = broadcast(c)
    return c.w.rem(a, b) if c.attr("fmod", 0) else functions.remainder(c.w, a, b)


def power(c: Call) -> SSAValue:
    """a ** b, in the type of a; the exponent may have another type."""
    a, exponent = c.tensor(0), c.value(1)
    element = tensor_type(a).element_type
    if (number := _one_number(c, exponent)) is not None:
        return functions.power(c.w, a, int(number) if number.is_integer() else number)
    b = c.tensor(1)
    other = tensor_type(b).element_type
    if is_float(other) and not is_float(element):
        wide = f64 if other == f64 else f32
        found = c.w.pointwise(PowOp, c.w.cast(a, wide), c.w.cast(b, wide))
        return c.w.cast(found, element)
    return functions.power(c.w, *broadcast(c, [a, c.w.cast(b, element)]))


def _one_number(c: Call, value: Tensor) -> float | None:
    """The number of a known tensor with one element that does not change the shape; else None."""
    if not isinstance(value, Known) or value.has_dims or value.array.size != 1 or value.array.ndim > c.rank(0):
        return None
    return float(value.array.reshape(-1)[0])


def shift(c: Call) -> SSAValue:
    """Bits moved up or down by counts; integers without a sign get zeros from above."""
    direction = c.attr("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise NotSupported(f"direction is {direction!r}, expected LEFT or RIGHT")
    return c.w.pointwise("shift_left" if direction == "LEFT" else "shift_right", *broadcast(c))


def both(c: Call) -> Result:
    """a and b, on booleans; if one is a mask of formulas or known, the result is a mask."""
    a, b = c.value(0), c.value(1)
    if not isinstance(a, Mask | Known) and not isinstance(b, Mask | Known):
        return bits(functions.bit_and)(c)
    if (dims := met(shape_of(a), shape_of(b))) is None:
        return bits(functions.bit_and)(c)
    return _boolean(c, 0).both(_boolean(c, 1), dims).proved(c.w.scope)


def _boolean(c: Call, index: int) -> Mask:
    """An input of booleans as a mask."""
    value = c.value(index)
    if isinstance(value, Known):
        return Mask(value.dims) if value.array.all() else Mask(value.dims, (), (c.w.written(value),))
    return as_mask(value)


def where(c: Call) -> Result:
    """a where the condition holds, else b; the causal part of a mask stays apart, for attention."""
    first, shapes = c.value(0), [c.shape(i) for i in range(3)]
    dims = met(shapes[0], shapes[1])
    dims = None if dims is None else met(dims, shapes[2])
    if dims is None or isinstance(first, Known):
        condition, a, b = broadcast(c)
        return c.w.where(condition, a, b)
    mask, a, b = as_mask(first), c.natural(1), c.natural(2)
    if mask.everywhere():
        return masked_or_spread(a, dims)
    triangles, rest = mask.parted()
    if triangles.formulas and rest != Mask(mask.dims):
        a, mask = c.w.where(c.w.natural(rest), a, b), triangles
    return masked_or_spread(c.w.where(c.w.natural(mask), a, b), dims)


# ** activations **


def clip(c: Call) -> SSAValue:
    """Between two bounds, which are attributes before opset 11."""
    x = c.tensor(0)
    bounds: list[SSAValue | float | None] = []
    for index, name in ((1, "min"), (2, "max")):
        given: SSAValue | float | None = c.attr(name)
        if c.has(index):
            number = _one_number_of_any_rank(c, index)
            given = c.w.reshape(c.tensor(index), ()) if number is None else number
        bounds.append(given)
    element = tensor_type(x).element_type
    if not is_float(element):
        bounds = [int(b) if isinstance(b, float | int) else b for b in bounds]
    return functions.clamp(c.w, x, *bounds)


def _one_number_of_any_rank(c: Call, index: int) -> float | None:
    value = c.value(index)
    if not isinstance(value, Known) or value.has_dims or value.array.size != 1:
        return None
    return float(value.array.reshape(-1)[0])


def gelu(c: Call, x: SSAValue) -> SSAValue:
    return c.w.pointwise("fast_gelu" if c.attr("approximate", "none") == "tanh" else "gelu", x)


def hard_sigmoid(c: Call, x: SSAValue) -> SSAValue:
    """max(0, min(1, alpha * x + beta))"""
    scaled = c.w.add(c.w.mul(x, c.attr("alpha", 0.2)), c.attr("beta", 0.5))
    return functions.clamp(c.w, scaled, 0.0, 1.0)


def swish(c: Call, x: SSAValue) -> SSAValue:
    """x * sigmoid(alpha * x)"""
    alpha = c.attr("alpha", 1.0)
    return c.w.pointwise("silu", x) if alpha == 1 else c.w.mul(x, c.w.pointwise("sigmoid", c.w.mul(x, alpha)))


def mish(c: Call, x: SSAValue) -> SSAValue:
    """x * tanh(log(1 + exp(x))) (arXiv:1908.08681)."""
    return c.w.mul(x, c.w.pointwise("tanh", functions.softplus(c.w, x)))


def selu(c: Call, x: SSAValue) -> SSAValue:
    """gamma * x above 0, else gamma * alpha * (exp(x) - 1) (arXiv:1706.02515)."""
    return functions.elu(c.w, x, c.attr("alpha", 1.6732632423543772), c.attr("gamma", 1.0507009873554805))


def shrink(c: Call, x: SSAValue) -> SSAValue:
    """x moved towards 0 by `bias` where |x| is above `lambd`, else 0."""
    edge, bias = c.attr("lambd", 0.5), c.attr("bias", 0.0)
    element = tensor_type(x).element_type
    if not is_float(element):
        wide = c.w.cast(x, f32)
        low = c.w.where(c.w.compare("gt", wide, edge), c.w.sub(wide, bias), 0)
        return c.w.cast(c.w.where(c.w.compare("lt", wide, -edge), c.w.add(wide, bias), low), element)
    low = c.w.where(c.w.compare("gt", x, edge), c.w.sub(x, bias), 0)
    return c.w.where(c.w.compare("lt", x, -edge), c.w.add(x, bias), low)


def thresholded_relu(c: Call, x: SSAValue) -> SSAValue:
    return c.w.where(c.w.compare("gt", x, c.attr("alpha", 1.0)), x, 0)


def prelu(c: Call) -> SSAValue:
    """x above 0, else slope * x; the slope broadcasts, or has a number for each channel."""
    x, slope = c.tensor(0), c.tensor(1)
    dims, own = tensor_type(x).dims, tensor_type(slope).dims
    if len(own) == 1 and len(dims) > 2 and own[0] is dims[1] and own[0] is not dims[-1]:
        slope = c.w.reshape(slope, (*own, *(1 for _ in dims[2:])))
    x, slope = broadcast(c, [x, slope])
    return c.w.where(c.w.compare("lt", x, 0), c.w.mul(x, slope), x)


def is_infinite(c: Call, x: SSAValue) -> SSAValue:
    """Whether elements are infinite, of one sign or of both."""
    positive, negative = c.attr("detect_positive", 1), c.attr("detect_negative", 1)
    largest = LARGEST[tensor_type(x).element_type]
    if positive and negative:
        return c.w.compare("gt", c.w.pointwise("abs", x), largest)
    if positive or negative:
        return c.w.compare("gt", x, largest) if positive else c.w.compare("lt", x, -largest)
    return c.w.expand(c.w.scalar(0, i1), tensor_type(x).dims)


# ** conversions **


def converted(c: Call, x: SSAValue, to: Attribute) -> SSAValue:
    """x converted to an element type; the attribute `saturate` limits it to the range of a float of 8 bits. Integers of
    4 bits wrap, also those of floats."""
    if to == f8E8M0FNU:
        return _power_of_2(c, x)
    if isinstance(to, Float8) and c.attr("saturate", 1):
        wide = f64 if tensor_type(x).element_type == f64 else f32
        x = functions.clamp(c.w, c.w.cast(x, wide), -LARGEST[to], LARGEST[to])
    if to in (i4, ui4) and is_float(tensor_type(x).element_type):
        x = c.w.cast(x, i32)
    return c.w.cast(x, to)


def _power_of_2(c: Call, x: SSAValue) -> SSAValue:
    """x rounded up, down or to the nearest power of 2, by the attribute `round_mode`."""
    mode = c.attr("round_mode", "up")
    x = c.w.cast(x, f32)
    if c.attr("saturate", 1):
        x = functions.clamp(c.w, x, 2.0**-127, LARGEST[f8E8M0FNU])
    if mode == "nearest":
        return c.w.cast(x, f8E8M0FNU)
    if mode not in ("up", "down"):
        raise NotSupported(f"round_mode is {mode!r}, expected up, down or nearest")
    bits = c.w.op(BitcastOp, x)
    if mode == "up":
        bits = c.w.add(bits, (1 << 23) - 1)
    power = c.w.op(BitcastOp, c.w.pointwise("bit_and", bits, 255 << 23))
    return c.w.cast(c.w.where(c.w.compare("eq", x, x), power, x), f8E8M0FNU)


def cast(c: Call) -> Result:
    value, to = c.value(0), c.element_attr("to")
    if isinstance(value, Affine) and to in INTEGERS:
        return replace(value, element=to)
    if isinstance(value, Affine) and (numbers := counted(c.w, value, to)) is not None:
        return spread(numbers, value.dims)
    return converted(c, c.tensor(0), to)


def cast_like(c: Call) -> SSAValue:
    return converted(c, c.tensor(0), element_of(c.value(1)))


def bit_cast(c: Call) -> SSAValue:
    """The memory of a tensor as elements of another type of the same width."""
    x, to = c.tensor(0), c.element_attr("to")
    return reinterpreted(c.w, x, to, tensor_type(x).dims)


def _in_float(function: Callable[[Call, SSAValue], SSAValue]) -> Function:
    """A function that sums many terms, computed in f32 for narrower floats."""

    def wide(c: Call, x: SSAValue) -> SSAValue:
        element = tensor_type(x).element_type
        return c.w.cast(function(c, c.w.cast(x, compute_type(element))), element)

    return wide


ROWS: dict[str, Row] = {
    **{
        name: unary(op)
        for name, op in (
            *((n, n.lower()) for n in ("Abs", "Neg", "Exp", "Log", "Sqrt", "Tanh", "Erf", "Sigmoid", "Relu")),
            *((n, n.lower()) for n in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh")),
            *((n, n.lower()) for n in ("Asinh", "Acosh", "Atanh", "Floor")),
            ("com.microsoft.FastGelu", "fast_gelu"),
        )
    },
    "Add": sum_of(1),
    "Sub": sum_of(-1),
    "Mul": product_of,
    "Div": divide,
    "Mod": modulo,
    "Pow": power,
    "Max": several("max"),
    "Min": several("min"),
    "Sum": several("add"),
    "Mean": mean,
    "BitShift": shift,
    "And": both,
    "BitwiseAnd": bits(functions.bit_and),
    "Or BitwiseOr": bits(functions.bit_or),
    "Xor": compare("ne"),
    "BitwiseXor": lambda c: c.w.pointwise(BitXorOp, *broadcast(c)),
    "Not BitwiseNot": compute(lambda c, x: functions.invert(c.w, x)),
    "Equal": compare("eq"),
    "Less": compare("lt"),
    "LessOrEqual": compare("le"),
    "Greater": compare("gt"),
    "GreaterOrEqual": compare("ge"),
    "Where": where,
    "Ceil": compute(lambda c, x: functions.ceil(c.w, x)),
    "Round": compute(lambda c, x: functions.round_to_even(c.w, x)),
    "Sign": compute(lambda c, x: functions.sign(c.w, x)),
    "Reciprocal": compute(lambda c, x: functions.reciprocal(c.w, x)),
    "IsNaN": compute(lambda c, x: c.w.compare("ne", x, x)),
    "IsInf": compute(is_infinite),
    # activations
    "Clip": clip,
    "Gelu": compute(gelu),
    "com.microsoft.Gelu": unary("gelu"),
    "com.microsoft.QuickGelu": compute(
        lambda c, x: c.w.mul(x, c.w.pointwise("sigmoid", c.w.mul(x, c.attr("alpha", 1.702))))
    ),
    "com.microsoft.BiasGelu": lambda c: c.w.pointwise("gelu", binary("add")(c)),
    "HardSigmoid": compute(hard_sigmoid),
    "HardSwish": compute(lambda c, x: functions.hard_swish(c.w, x)),
    "LeakyRelu": compute(lambda c, x: functions.leaky_relu(c.w, x, c.attr("alpha", 0.01))),
    "Elu": compute(lambda c, x: functions.elu(c.w, x, c.attr("alpha", 1.0))),
    "Celu": compute(lambda c, x: functions.celu(c.w, x, c.attr("alpha", 1.0))),
    "Selu": compute(selu),
    "Softplus": compute(_in_float(lambda c, x: functions.softplus(c.w, x))),
    "Softsign": compute(lambda c, x: functions.softsign(c.w, x)),
    "Swish": compute(swish),
    "Mish": compute(_in_float(mish)),
    "Shrink": compute(shrink),
    "ThresholdedRelu": compute(thresholded_relu),
    "PRelu": prelu,
    # conversions
    "Cast": cast,
    "CastLike": cast_like,
    "BitCast": bit_cast,
}
