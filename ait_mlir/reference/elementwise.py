"""Reference semantics of elementwise ops, on tensors with broadcasting and on the scalars of a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation

from ait_mlir.dialects.ait import elementwise as ops
from ait_mlir.dialects.ait.dtypes import BY_IR, integer_range, is_float
from ait_mlir.dialects.ait.elementwise import BitcastOp, CastOp, ClampOp, CompareOp, WhereOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.reference.core import (
    Array,
    Arrays,
    Evaluation,
    Rule,
    element_type_of,
    reference,
    storage_dtype,
    to_storage,
    value_dtype,
)


def _of_scipy(name: str) -> Callable[[Array], Array]:
    """A function of `scipy.special`, imported at the first call: the import takes 0.2 s, and a compilation needs these
    functions only to fold constants."""

    def call(x: Array) -> Array:
        import scipy.special

        return getattr(cast(Any, scipy.special), name)(x)

    return call


sigmoid, erfc, erfinv = _of_scipy("expit"), _of_scipy("erfc"), _of_scipy("erfinv")
gammaln, psi = _of_scipy("gammaln"), _of_scipy("psi")
SQRT_HALF = np.sqrt(0.5)
SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)


def relu(x: Array) -> Array:
    """max(x, 0), with NaN staying NaN."""
    return np.maximum(x, np.zeros((), x.dtype))


def gelu(x: Array) -> Array:
    """x * Phi(x), the exact form: 0.5 * x * (1 + erf(x / sqrt(2)))."""
    return 0.5 * x * erfc(-x * SQRT_HALF)


def fast_gelu(x: Array) -> Array:
    """The tanh approximation of gelu: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    return 0.5 * x * (1.0 + np.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))


def silu(x: Array) -> Array:
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def digamma(x: Array) -> Array:
    """The derivative of log(gamma(x)). Below 0 it is psi(1 - x) - pi / tan(pi x), where x is reduced to a period of tan
    before the product with pi rounds; SciPy loses digits near a pole there."""
    apart = x - np.rint(x)
    reflected: Array = psi(1 - x) - np.pi / np.tan(np.pi * np.where(apart == 0, np.nan, apart))
    direct: Array = psi(x)
    return np.where(x < 0, reflected, direct)


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": _of_scipy("erf"),
    "sigmoid": sigmoid,
    "relu": relu,
    "gelu": gelu,
    "fast_gelu": fast_gelu,
    "silu": silu,
    "abs": np.abs,
    "floor": np.floor,
    "round": np.rint,
    "sin": np.sin,
    "cos": np.cos,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "exp2": np.exp2,
    "log2": np.log2,
    "log10": np.log10,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erfc": erfc,
    "erfinv": lambda x: np.copysign(erfinv(x), x),  # a zero keeps its sign
    "lgamma": lambda x: np.where(np.isinf(x), np.abs(x), gammaln(x)),
    "digamma": digamma,
}


def divide(a: Array, b: Array) -> Array:
    """Return a / b; integers truncate toward zero and give 0 for a divisor of 0 (undefined on hardware)."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    safe = np.where(b == 0, np.ones((), b.dtype), b)
    quotient = np.floor_divide(a, safe)
    inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
    return np.where(b == 0, np.zeros((), a.dtype), quotient + inexact.astype(a.dtype))


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder of division towards zero; for integers, a if b is 0."""
    return np.fmod(a, b) if a.dtype.kind == "f" else a - divide(a, b) * b


def shift_left(a: Array, b: Array) -> Array:
    """Return a shifted left; 0 for a negative count or a count of at least the bits of the type."""
    outside = (b < 0) | (b >= 8 * a.itemsize)
    return np.where(outside, np.zeros((), a.dtype), np.left_shift(a, np.where(outside, 0, b).astype(a.dtype)))


def shift_right(a: Array, b: Array) -> Array:
    """Return a shifted right, with copies of its sign, or zeros for an unsigned type."""
    last = 8 * a.itemsize - (a.dtype.kind == "i")
    return np.right_shift(a, np.where((b < 0) | (b > last), last, b).astype(a.dtype))


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "rem": remainder,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "gcd": np.gcd,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "shift_left": shift_left,
    "shift_right": shift_right,
}

COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def cast_values(x: Array, source: Attribute, target: Attribute) -> Array:
    """Convert values to another element type, rounding to it unless it holds every value of the source type.

    Float to integer truncates toward zero and saturates at the ends of the range, NaN gives 0. Anything to `i1` is
    `x != 0`. Integer to narrower integer wraps.
    """
    dtype = storage_dtype(target)
    if dtype == np.bool_:
        return np.not_equal(x, 0)
    if is_float(target):
        exact = is_float(source) and BY_IR[target].holds(BY_IR[source])
        return x if exact else to_storage(x, target).astype(value_dtype(target))
    held = value_dtype(target)
    if x.dtype != np.float64:
        return x.astype(dtype).astype(held)
    ends_of = integer_range(target)
    assert ends_of is not None, "an integer type"
    whole = np.trunc(np.nan_to_num(x, nan=0.0))
    inside = (whole >= float(ends_of[0])) & (whole < float(ends_of[1] + 1))
    ends = np.where(whole > 0, np.array(ends_of[1], held), np.array(ends_of[0], held))
    return np.where(inside, np.where(inside, whole, 0.0).astype(held), ends)


def arithmetic(function: Callable[..., Array]) -> Rule:
    """The semantics of an op that applies a NumPy function; on `i1` it computes with 0 and 1 and gives `result != 0`,
    like C++.
    """

    def rule(op: Operation, arrays: Arrays, ev: Evaluation) -> Arrays:
        if arrays[0].dtype == np.bool_:
            return (np.not_equal(function(*(a.astype(np.int32) for a in arrays)), 0),)
        return (np.asarray(function(*arrays)),)

    return rule


def define(wanted: Sequence[type[Operation]], table: Mapping[str, Callable[..., Array]], name: str) -> None:
    """Register the function of each op in a table; `ValueError` for an op without a row or a row without an op."""
    classes = {op.name.removeprefix("ait."): op for op in wanted}
    for mnemonic in classes.keys() ^ table.keys():
        where = f"dialects/ait/elementwise.py defines no ait.{mnemonic}"
        if mnemonic in classes:
            where = f"ait.{mnemonic} of dialects/ait/elementwise.py has no row"
        raise ValueError(f"{where}, but {name} of {__file__} must have one row for each; add or remove one")
    for mnemonic, function in table.items():
        reference(classes[mnemonic])(arithmetic(function))


define(ops.UNARY, UNARY, "UNARY")
define(ops.BINARY, BINARY, "BINARY")


@reference(CompareOp)
def _(op: CompareOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    a, b = arrays
    return (np.asarray(COMPARE[op.predicate.data](a, b)),)


@reference(WhereOp)
def _(op: WhereOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    condition, a, b = arrays
    return (np.where(condition, a, b),)


@reference(ClampOp)
def _(op: ClampOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    (x,) = arrays
    low, high = op.bounds
    if low is not None:
        x = np.maximum(x, np.array(low, x.dtype))
    return (x if high is None else np.minimum(x, np.array(high, x.dtype)),)


@reference(CastOp)
def _(op: CastOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (cast_values(arrays[0], _narrowest(op), element_type_of(op.results[0].type)),)


@reference(BitcastOp)
def _(op: BitcastOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    source, target = (element_type_of(x.type) for x in (op.operands[0], op.results[0]))
    bits = arrays[0].astype(storage_dtype(source)).view(storage_dtype(target))
    return (bits.astype(value_dtype(target)),)


def _narrowest(op: Operation) -> Attribute:
    """The narrowest element type that holds the operand of a cast: its type before casts that only widen."""
    source = element_type_of(op.operands[0].type)
    while isinstance(inner := op.operands[0].owner, CastOp):
        before = element_type_of(inner.operands[0].type)
        if not (is_float(before) and is_float(source) and BY_IR[source].holds(BY_IR[before])):
            break
        op, source = inner, before
    return source


@reference(FusedElementwiseOp)
def _(fused: FusedElementwiseOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    yielded = ev.run_region(fused.body, arrays)
    return ev.whole(yielded, fused)
