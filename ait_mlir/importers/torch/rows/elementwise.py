"""Arithmetic, activations, comparisons, masks and conversions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf, prod

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import INTEGERS, Affine, Mask, Spread, Value, as_mask, compared, is_mask, spread
from ait_mlir.compositions import functions
from ait_mlir.compositions.ranges import EXACT_INTEGERS, counted
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import LARGEST, f8E4M3FN
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import DimError, Expr
from ait_mlir.importers.torch.call import Call, Row, as_expr, element_type
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.rows.common import as_affine, operand, term
from ait_mlir.rewrites.engine.numbers import stored

Scalars = Callable[[Call, SSAValue], SSAValue]


def unary(op: type[AitOp]) -> Row:
    """A row for one op on the input, in the result's element type."""
    return compute(lambda c, x: c.w.op(op, x))


def compute(build: Scalars) -> Row:
    """A row for several ops on the input, in the result's element type, before the input is broadcast."""

    def row(c: Call) -> Value:
        return spread(build(c, c.w.cast(c.natural("self"), c.element)), c.dims)

    return row


def binary(op: type[AitOp], swapped: bool = False) -> Row:
    """A row for one op on `self` and `other`, converted to the result's element type. With numbers, PyTorch computes
    products and quotients of f16 and bf16 in f32, on a card also sums; on a CPU it rounds the numbers of sums.
    """

    def row(c: Call) -> Value:
        on_cpu = c.node.meta["val"].device.type == "cpu"
        is_wide = op in (ait.MulOp, ait.DivOp) or (op in (ait.AddOp, ait.SubOp) and not on_cpu)
        take = term if is_wide else operand
        element = f32 if any(_is_beyond(c, name, is_wide) for name in ("self", "other", "alpha")) else c.element
        first, second = ("other", "self") if swapped else ("self", "other")
        a, b = (take(c, name, element) for name in (first, second))
        if c["alpha"] not in (None, 1):
            factors = c[second], c["alpha"]
            if c.element in (f16, bf16) and all(isinstance(x, int | float) for x in factors):  # their product has f32
                b = c.w.number(prod(x if is_wide else stored(x, c.element) for x in factors), element)
            else:
                b = c.w.mul(b, take(c, "alpha", element))
        return spread(c.w.cast(c.w.op(op, a, b), c.element), c.dims)

    return row


def _is_beyond(c: Call, name: str, is_wide: bool) -> bool:
    """Whether PyTorch uses a scalar argument unrounded, and the f16 or bf16 of the result does not hold it.

    `is_wide`: PyTorch computes in f32. Numbers that only the run knows then count, too; on a CPU also a second operand
    without dims.
    """
    found = c.arguments.get(name)
    if c.element not in (f16, bf16) or found is None:
        return False
    if isinstance(found, int | float):
        return LARGEST[c.element] < abs(found) < inf
    if isinstance(found, Expr):
        return c.w.scope.bounds(found)[1] > (EXACT_INTEGERS[c.element] if is_wide else LARGEST[c.element])
    if not is_wide or isinstance(found, torch.SymFloat):
        return is_wide
    meant = c.operand(name).meta["val"]
    if not isinstance(meant, torch.Tensor):
        return True
    is_number = meant.dim() == 0 and meant.device.type == "cpu" and name == "other"
    return is_number and element_type(meant.dtype) not in (c.element, i1)


def affine_or(formula: Callable[[Call, Affine, Affine], Affine | None], otherwise: Row) -> Row:
    """A row that gives a formula if both operands are integer formulas, and calls `otherwise` if not."""

    def row(c: Call) -> Value:
        a, b = as_affine(c, "self"), as_affine(c, "other")
        if a is not None and b is not None and c.element in INTEGERS:
            with suppress(DimError):  # a formula beyond 64 bits: the op wraps around
                if (made := formula(c, a, b)) is not None:
                    return replace(made, element=c.element)
        found = otherwise(c)
        assert isinstance(found, SSAValue | Affine | Mask | Spread)
        return found

    return row


def _sum(c: Call, a: Affine, b: Affine) -> Affine:
    return a.plus(b, _alpha(c), c.dims)


def _difference(c: Call, a: Affine, b: Affine) -> Affine:
    return a.plus(b, -_alpha(c), c.dims)


def _reverse(c: Call, a: Affine, b: Affine) -> Affine:
    return b.broadcast(c.dims).plus(a, -_alpha(c), c.dims)


def _alpha(c: Call) -> Expr:
    return as_expr(1 if c["alpha"] is None else c["alpha"])


def _product(c: Call, a: Affine, b: Affine) -> Affine | None:
    for x, y in ((a, b), (b, a)):
        if not x.moving_axes():
            return y.broadcast(c.dims).times(x.offset)
    return None


def multiply(c: Call) -> Value:
    """A product; of booleans, their conjunction."""
    if c.element == i1:
        return both(c)
    found = affine_or(_product, binary(ait.MulOp))(c)
    assert isinstance(found, SSAValue | Affine | Mask | Spread)
    return found


# ** activations **


def gelu(c: Call) -> Value:
    """The exact gelu or its approximation by tanh."""
    op = ait.FastGeluOp if c["approximate"] == "tanh" else ait.GeluOp
    return spread(c.w.op(op, c.natural("self")), c.dims)


_BOUNDS = (("min", "min_val"), ("max", "max_val"))


def _bound(c: Call, name: str) -> SSAValue | float:
    """A bound as a value, or as a number rounded to the result's element type."""
    found = c.arguments[name]
    if not isinstance(found, int | float):
        return operand(c, name, c.element)
    rounded = stored(found, c.element)
    return found if found == rounded else rounded


def clamp(c: Call) -> Value:
    """Between two bounds, each of which may be missing."""
    given = c.arguments
    names = [next((name for name in names if given.get(name) is not None), None) for names in _BOUNDS]
    bounds = [None if name is None else _bound(c, name) for name in names]
    return spread(functions.clamp(c.w, c.w.cast(c.natural("self"), c.element), *bounds), c.dims)


# ** comparisons and masks **

# (m, n, k): `a PREDICATE b` holds where m * a + n * b + k >= 0
def compare(predicate: str) -> Row:
    """A row for a comparison, in the type in which PyTorch compares; of formulas, a mask of a formula."""

    def row(c: Call) -> Value:
        a, b = as_affine(c, "self"), as_affine(c, "other")
        if a is not None and b is not None and (ordered := compared(a, b, predicate, c.dims)) is not None:
            return ordered.proved(c.w.scope)
        if a is not None and b is not None and (same := _same_everywhere(a, b, c)) is not None:
            return Mask(c.dims) if same == (predicate == "eq") else Mask(c.dims, (Affine.filled(c.dims, -1),))
        other = c.node.args[1]
        common = torch.result_type(
            c.node.args[0].meta["val"], other if not hasattr(other, "meta") else other.meta["val"]
        )
        element = element_type(common)
        x, y = operand(c, "self", element), operand(c, "other", element)
        made = c.w.op(ait.CompareOp, x, y, properties={"predicate": predicate})
        return Mask(c.dims, (), (made,))

    return row


def _same_everywhere(a: Affine, b: Affine, c: Call) -> bool | None:
    """True if two formulas are equal at every index, False if at none, else None."""
    difference = a.plus(b, -1, c.dims)
    if difference.moving_axes():
        return None
    if difference.offset.as_int() == 0:
        return True
    low, high = c.w.scope.bounds(difference.offset)
    return False if low > 0 or high < 0 else None


def is_nan(c: Call) -> Value:
    """Whether each element is NaN: not equal to itself."""
    x = c.natural("self")
    return Mask(c.dims, (), (c.w.compare("ne", x, x),))


def is_infinite(c: Call) -> Value:
    """Whether an element is infinite: its magnitude is above the largest number of its type. No integer is."""
    element = tensor_type(c.natural("self")).element_type
    if element not in LARGEST:
        return Mask(c.dims, (Affine.filled(c.dims, -1),))
    x = c.w.op(ait.AbsOp, c.natural("self"))
    largest = c.w.scalar(LARGEST[element], element)
    return Mask(c.dims, (), (c.w.compare("gt", x, largest),))


def both(c: Call) -> Value:
    """a and b, on booleans or on bits."""
    if c.element != i1:
        return spread(c.w.op(ait.BitAndOp, operand(c, "self", c.element), operand(c, "other", c.element)), c.dims)
    return _boolean(c, "self").both(_boolean(c, "other"), c.dims).proved(c.w.scope)


def either(c: Call) -> Value:
    """a or b, on booleans or on bits."""
    if c.element != i1:
        return spread(c.w.op(ait.BitOrOp, operand(c, "self", c.element), operand(c, "other", c.element)), c.dims)
    a, b = _boolean(c, "self"), _boolean(c, "other")
    if Mask(a.dims) == a or Mask(b.dims) == b:
        return Mask(c.dims)
    made = c.w.where(c.w.natural(a), c.w.scalar(1, i1), c.w.natural(b))
    return Mask(c.dims, (), (made,))


def negate(c: Call) -> Value:
    """not a, on booleans; on integers, all bits inverted."""
    if c.element != i1:
        return spread(functions.invert(c.w, c.natural("self")), c.dims)
    a = _boolean(c, "self")
    if len(a.formulas) == 1 and not a.values:
        f = a.formulas[0]
        return Mask(c.dims, (Affine.filled(c.dims, -1).plus(f, -1, c.dims),))
    return Mask(c.dims, (), (functions.invert(c.w, c.w.natural(a)),))


def _boolean(c: Call, name: str) -> Mask:
    if isinstance(number := c.arguments[name], bool):
        return Mask(()) if number else Mask((), (Affine.filled((), -1),))
    value = c.value(name)
    if is_mask(value):
        return as_mask(value)
    return Mask(c.shape(name), (), (c.w.cast(c.w.natural(value), i1),))


def where(condition: str, a: str, b: str) -> Row:
    """`a` where the condition holds, else `b`; the condition may be known to hold everywhere."""

    def row(c: Call) -> Value:
        mask = _boolean(c, condition).proved(c.w.scope)
        if mask == Mask(mask.dims):
            return spread(operand(c, a, c.element), c.dims)
        if c.element == i1:
            x, y = operand(c, a, i1), operand(c, b, i1)
            return Mask(c.dims, (), (c.w.where(c.w.natural(mask), x, y),))
        x, y = operand(c, a, c.element), operand(c, b, c.element)
        triangles, rest = mask.parted()
        if triangles != Mask(mask.dims) and rest != Mask(mask.dims):  # keeps the causal part apart, for attention
            x = c.w.where(c.w.natural(rest), x, y)
            mask = triangles
        return spread(c.w.where(c.w.natural(mask), x, y), c.dims)

    return row


# ** conversions **


def convert(c: Call) -> Value:
    """A conversion to another element type; other devices and layouts change nothing here."""
    source = c.value("input" if "input" in c.arguments and "self" not in c.arguments else "self")
    if isinstance(source, Affine) and c.element in INTEGERS:
        return replace(source, element=c.element)
    if isinstance(source, Affine) and (numbers := counted(c.w, source, c.element)) is not None:
        return spread(numbers, c.dims)
    if isinstance(source, Mask) and c.element in INTEGERS and (always := source.everywhere()) is not None:
        return Affine.filled(c.dims, int(always), c.element)
    if is_mask(source) and c.element == i1:
        return source
    x = c.w.natural(source)
    if c.element == f8E4M3FN:  # PyTorch gives the largest number for larger ones
        x = functions.clamp(c.w, c.w.cast(x, f64 if tensor_type(x).element_type == f64 else f32), -448.0, 448.0)
    made = c.w.cast(x, c.element)
    return Mask(c.dims, (), (made,)) if c.element == i1 else spread(made, c.dims)


ROWS: dict[str, Row] = {
    # arithmetic
    "aten.add.Tensor aten.add.Scalar": affine_or(_sum, binary(ait.AddOp)),
    "aten.sub.Tensor aten.sub.Scalar": affine_or(_difference, binary(ait.SubOp)),
    "aten.rsub.Tensor aten.rsub.Scalar": affine_or(_reverse, binary(ait.SubOp, swapped=True)),
    "aten.mul.Tensor aten.mul.Scalar": multiply,
    "aten.div.Tensor aten.div.Scalar aten.true_divide.Tensor": binary(ait.DivOp),
    "aten.maximum.default": binary(ait.MaxOp),
    "aten.minimum.default": binary(ait.MinOp),
    "aten.max.other": binary(ait.MaxOp),
    "aten.min.other": binary(ait.MinOp),
    "aten.neg.default": unary(ait.NegOp),
    "aten.abs.default": unary(ait.AbsOp),
    "aten.square.default": compute(lambda c, x: c.w.mul(x, x)),
    "aten.exp.default": unary(ait.ExpOp),
    "aten.log.default": unary(ait.LogOp),
    "aten.sqrt.default": unary(ait.SqrtOp),
    "aten.rsqrt.default": unary(ait.RsqrtOp),
    "aten.erf.default": unary(ait.ErfOp),
    "aten.sin.default": unary(ait.SinOp),
    "aten.cos.default": unary(ait.CosOp),
    "aten.log1p.default": unary(ait.Log1pOp),
    "aten.expm1.default": unary(ait.Expm1Op),
    "aten.exp2.default": unary(ait.Exp2Op),
    "aten.log2.default": unary(ait.Log2Op),
    "aten.log10.default": unary(ait.Log10Op),
    "aten.tan.default": unary(ait.TanOp),
    "aten.asin.default": unary(ait.AsinOp),
    "aten.acos.default": unary(ait.AcosOp),
    "aten.atan.default": unary(ait.AtanOp),
    "aten.sinh.default": unary(ait.SinhOp),
    "aten.cosh.default": unary(ait.CoshOp),
    "aten.asinh.default": unary(ait.AsinhOp),
    "aten.acosh.default": unary(ait.AcoshOp),
    "aten.atanh.default": unary(ait.AtanhOp),
    "aten.erfc.default": unary(ait.ErfcOp),
    "aten.erfinv.default": unary(ait.ErfinvOp),
    "aten.lgamma.default": unary(ait.LgammaOp),
    "aten.digamma.default": unary(ait.DigammaOp),
    "aten.atan2.default": binary(ait.Atan2Op),
    "aten.hypot.default": binary(ait.HypotOp),
    "aten.gcd.default": binary(ait.GcdOp),
    "aten.clamp.default aten.clamp.Tensor aten.clamp_min.default aten.clamp_min.Tensor aten.clamp_max.default": clamp,
    "aten.clamp_max.Tensor": clamp,
    # activations
    "aten.relu.default": unary(ait.ReluOp),
    "aten.tanh.default": unary(ait.TanhOp),
    "aten.sigmoid.default": unary(ait.SigmoidOp),
    "aten.silu.default": unary(ait.SiluOp),
    "aten.gelu.default": gelu,
    "aten.relu6.default": compute(lambda c, x: functions.clamp(c.w, x, 0.0, 6.0)),
    "aten.hardtanh.default": clamp,
    # comparisons and masks
    **{
        f"aten.{predicate}.{overload}": compare(predicate)
        for predicate in ait.PREDICATES
        for overload in ("Tensor", "Scalar")
    },
    "aten.isnan.default": is_nan,
    "aten.isinf.default": is_infinite,
    **{
        f"aten.{name}": row
        for word, row in (("and", both), ("or", either))
        for name in (
            *(f"logical_{word}.default", f"__{word}__.Tensor", f"__{word}__.Scalar", f"bitwise_{word}.Tensor"),
            *(f"bitwise_{word}.Scalar", f"bitwise_{word}.Scalar_Tensor"),
        )
    },
    **{
        f"aten.{name}.{overload}": binary(op)
        for op, names in (
            (ait.ShiftLeftOp, ("bitwise_left_shift", "__lshift__")),
            (ait.ShiftRightOp, ("bitwise_right_shift", "__rshift__")),
        )
        for name in names
        for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor", "Scalar")
    },
    "aten.logical_not.default aten.bitwise_not.default": negate,
    "aten.where.self aten.where.ScalarSelf aten.where.ScalarOther": where("condition", "self", "other"),
    "aten.where.Scalar": where("condition", "self", "other"),
    "aten.masked_fill.Scalar aten.masked_fill.Tensor": where("mask", "value", "self"),
    # conversions
    "aten.to.dtype aten.to.dtype_layout aten.to.device aten.to.other aten.type_as.default": convert,
    "aten._to_copy.default": convert,
}
