"""Functions that are several ops: roundings, powers, activations, norms of vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Affine, Mask, Value, spread
from ait_mlir.building.writer import Writer
from ait_mlir.compositions import functions, reduction
from ait_mlir.compositions.special import bessel, polygamma
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, Row
from ait_mlir.importers.torch.errors import NotSupported
from ait_mlir.importers.torch.rows.common import operand, term
from ait_mlir.importers.torch.rows.elementwise import compute
from ait_mlir.importers.torch.rows.reduction import axes_of
from ait_mlir.rewrites.engine.numbers import stored

Operands = Callable[[Call, str, Attribute], SSAValue]

# ** of each element **


def of_one(function: Callable[..., SSAValue], *parameters: str) -> Row:
    """A function of `self` and of arguments that are numbers."""
    return compute(lambda c, x: function(c.w, x, *(c[name] for name in parameters)))


def special(function: Callable[..., SSAValue], *parameters: Any) -> Row:
    """A special function of `self`, computed in at least f32; parameters are values or names of arguments."""

    def computed(c: Call, x: SSAValue) -> SSAValue:
        given = (c[p] if isinstance(p, str) else p for p in parameters)
        return c.w.cast(function(c.w, c.w.cast(x, compute_type(c.element)), *given), c.element)

    return compute(computed)


def of_two(function: Callable[[Writer, SSAValue, SSAValue], SSAValue]) -> Row:
    """A function of `self` and `other`, which may be numbers."""

    def row(c: Call) -> Value:
        a, b = operand(c, "self", c.element), operand(c, "other", c.element)
        return spread(function(c.w, a, b), c.dims)

    return row


def nan_to_num(c: Call) -> Value:
    """`self` without NaN and infinities; the numbers in their places are rounded to the element type."""
    given = (c[name] for name in ("nan", "posinf", "neginf"))
    numbers = [n if n is None else stored(n, c.element) for n in given]
    return spread(functions.nan_to_num(c.w, c.w.cast(c.natural("self"), c.element), *numbers), c.dims)


def threshold(c: Call) -> Value:
    """PyTorch does not round the limit to f16 or bf16, and rounds the value."""
    x, value = c.w.cast(c.natural("self"), c.element), stored(c["value"], c.element)
    return spread(functions.threshold(c.w, x, c["threshold"], value), c.dims)


def of_divisor(function: Callable[[Writer, SSAValue, SSAValue], SSAValue], take: Operands = term) -> Row:
    """A row for a function that divides `self` by `other`, which may be a quotient or a remainder.

    An element 0 of an integer tensor `other` is an error. `take` makes a value of an argument: PyTorch rounds a Python
    number to f16 or bf16 for a remainder, but not for a quotient.
    """

    def checked(c: Call) -> Value:
        a, b = take(c, "self", c.element), take(c, "other", c.element)
        if isinstance(c.arguments["other"], SSAValue):
            b = functions.divisor(c.w, b)
        return spread(function(c.w, a, b), c.dims)

    return checked


def divide_rounding(c: Call) -> Any:
    """torch.div: exact, or rounded towards zero or down."""
    divisions = {"floor": functions.floor_divide, "trunc": functions.trunc_divide, None: Writer.div}
    return of_divisor(divisions[c["rounding_mode"]])(c)


def random_leaky_relu(c: Call) -> Sequence[Value]:
    """Outside of training the slope is the middle of its range; the second result is the noise, unused."""
    if c["training"]:
        raise NotSupported("rrelu is random in training; call model.eval() before the export")
    slope = (float(c["lower"]) + float(c["upper"])) / 2
    return [functions.leaky_relu(c.w, c.tensor("self"), slope), c.value("noise")]


def power(c: Call) -> Value:
    """`self` to the power of `exponent`; one of them may be a number, and the exponent a formula of one number."""
    n = c.arguments["exponent"]
    if isinstance(n, Affine) and not n.moving_axes():
        n = n.offset.as_int()
    if isinstance(n, int | float):
        n = n if isinstance(n, int) else stored(n, c.element)
        return spread(functions.power(c.w, operand(c, "self", c.element), n), c.dims)
    base = c.arguments["self"]
    base = base if isinstance(base, int) else operand(c, "self", c.element)
    return spread(functions.power(c.w, base, operand(c, "exponent", c.element)), c.dims)


def has_sign(c: Call) -> Value:
    return Mask(c.dims, (), (functions.has_sign(c.w, c.natural("self")),))


def differ(c: Call) -> Value:
    """Exclusive or, of booleans or of bits."""
    a, b = operand(c, "self", c.element), operand(c, "other", c.element)
    found = functions.bit_xor(c.w, a, b)
    return Mask(c.dims, (), (found,)) if c.element == i1 else spread(found, c.dims)


# ** over dims **


def log_softmax(c: Call) -> Value:
    """The logarithm of the softmax along a dim; a scalar counts as one element."""
    x = c.w.reshape(c.w.cast(c.tensor("self"), c.element), c.dims or [1])
    return c.w.reshape(reduction.log_softmax(c.w, x, c.axis("dim")), c.dims)


def logsumexp(c: Call) -> Value:
    x = c.w.cast(c.tensor("self"), c.element)
    return reduction.logsumexp(c.w, x, axes_of(c, tensor_type(x).rank), bool(c["keepdim"] and c.dims))


def vector_norm(c: Call) -> Value:
    x = c.w.cast(c.tensor("self"), c.element)
    axes = axes_of(c, tensor_type(x).rank)
    return reduction.vector_norm(c.w, x, axes, float(c["ord"]), bool(c["keepdim"]))


def distances(c: Call) -> Value:
    """The distances [..., p, r] between the rows of x1 [..., p, m] and of x2 [..., r, m]."""
    rows, columns = c.natural("x1"), c.natural("x2")
    a, b = tensor_type(rows).dims, tensor_type(columns).dims
    one = const(1)
    apart = c.w.sub(c.w.reshape(rows, (*a[:-1], one, a[-1])), c.w.reshape(columns, (*b[:-2], one, b[-2], b[-1])))
    return reduction.vector_norm(c.w, apart, [tensor_type(apart).rank - 1], float(c["p"]))


def distance(c: Call) -> Value:
    """The norm of self - other, which broadcast."""
    apart = c.w.sub(c.w.cast(c.tensor("self"), c.element), c.w.cast(c.tensor("other"), c.element))
    return reduction.vector_norm(c.w, apart, range(tensor_type(apart).rank), float(c["p"]))


_OF_ONE: dict[str, Callable[[Writer, SSAValue], SSAValue]] = {
    "floor": functions.floor, "ceil": functions.ceil, "trunc": functions.trunc, "round": functions.round_to_even,
    "sign": functions.sign, "sgn": functions.sign, "angle": functions.angle, "reciprocal": functions.reciprocal,
    "hardsigmoid": functions.hard_sigmoid, "hardswish": functions.hard_swish,
}  # fmt: skip

ROWS: dict[str, Row] = {
    **{f"aten.{name}.default": of_one(function) for name, function in _OF_ONE.items()},
    "aten.round.decimals": of_one(functions.round_decimals, "decimals"),
    "aten.elu.default": of_one(functions.elu, "alpha", "scale", "input_scale"),
    "aten.celu.default": of_one(functions.celu, "alpha"),
    "aten.rrelu_with_noise_functional.default": random_leaky_relu,
    "aten.leaky_relu.default": of_one(functions.leaky_relu, "negative_slope"),
    "aten.softplus.default": of_one(functions.softplus, "beta", "threshold"),
    "aten.softshrink.default": of_one(functions.soft_shrink, "lambd"),
    "aten.threshold.default": threshold,
    "aten.nan_to_num.default": nan_to_num,
    **{
        f"aten.{name}.default": special(bessel, order, scaled)
        for name, order, scaled in (
            ("i0", 0, False),
            ("special_i0e", 0, True),
            ("special_i1", 1, False),
            ("special_i1e", 1, True),
        )
    },
    "aten.polygamma.default": special(polygamma, "n"),
    "aten.fmax.default": of_two(lambda w, a, b: functions.number_or_nan(w, "max", a, b)),
    "aten.fmin.default": of_two(lambda w, a, b: functions.number_or_nan(w, "min", a, b)),
    "aten.div.Tensor_mode aten.div.Scalar_mode": divide_rounding,
    "aten.floor_divide.default aten.floor_divide.Scalar": of_divisor(functions.floor_divide),
    "aten.remainder.Scalar aten.remainder.Tensor": of_divisor(functions.remainder, operand),
    "aten.remainder.Scalar_Tensor": of_divisor(functions.remainder, operand),
    "aten.signbit.default": has_sign,
    "aten.lcm.default": of_two(functions.least_common_multiple),
    "aten.copysign.Scalar aten.copysign.Tensor": of_two(functions.copy_sign),
    "aten.fmod.Scalar aten.fmod.Tensor": of_divisor(Writer.rem, operand),
    "aten.pow.Tensor_Scalar aten.pow.Tensor_Tensor aten.pow.Scalar": power,
    "aten.logical_xor.default aten.__xor__.Tensor aten.__xor__.Scalar aten.bitwise_xor.Tensor": differ,
    "aten.bitwise_xor.Scalar aten.bitwise_xor.Scalar_Tensor": differ,
    "aten.log_softmax.int aten._log_softmax.default": log_softmax,
    "aten.logsumexp.default": logsumexp,
    "aten.linalg_vector_norm.default": vector_norm,
    "aten.dist.default": distance,
    "aten._cdist_forward.default": distances,
}
