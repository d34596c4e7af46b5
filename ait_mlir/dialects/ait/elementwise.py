"""Elementwise ops, one definition for tensors (with broadcasting) and for the scalars of a region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)

from ait_mlir.dialects.ait.base import AitOp, PureOp, ResultTypes, Value, broadcast_shapes
from ait_mlir.dialects.ait.dtypes import compute_type, integer_range, is_element_type, is_float
from ait_mlir.dialects.ait.numbers import Number, literal_values, number_attr, number_text
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.syntax import SCALAR, Operands, Prop, Syntax, Word
from ait_mlir.dialects.ait.traits import Commutative, Monotone, ScalarLike
from ait_mlir.dialects.ait.types import TensorType


class ElementwiseOp(ScalarLike, PureOp):
    """Base: all operands are tensors, or all are scalars."""

    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ()
    FLOATS_ONLY: ClassVar[bool] = False
    INTEGERS_ONLY: ClassVar[bool] = False

    def __init__(self, *operands: Value, result_type: Attribute | None = None) -> None:
        self.set_up(operands, None if result_type is None else [result_type])

    def element_types(self) -> list[Attribute]:
        """The element type of each operand; raises unless all are tensors or all are scalars."""
        types = self.operand_types
        tensors = [isinstance(t, TensorType) for t in types]
        if any(tensors) != all(tensors):
            raise self.fail("operands must be all tensors or all scalars, got " + ", ".join(map(str, types)))
        elements = [t.element_type if isinstance(t, TensorType) else t for t in types]
        for t in elements:
            if not is_element_type(t):
                raise self.fail(f"operand type {t} is neither a tensor nor an element type")
        return elements

    def infer_element_type(self, elements: Sequence[Attribute]) -> Attribute:
        first = elements[0]
        for name, t in zip(self.OPERAND_NAMES, elements, strict=True):
            if t != first:
                raise self.fail(f"{name} has element type {t}, but {self.OPERAND_NAMES[0]} has {first}")
        if self.FLOATS_ONLY and not is_float(first):
            raise self.fail(f"needs a floating-point type, got {first}; convert with ait.cast")
        if self.INTEGERS_ONLY and is_float(first):
            raise self.fail(f"needs an integer type, got {first}; convert with ait.cast")
        return first

    def infer_result_types(self) -> ResultTypes:
        element = self.infer_element_type(self.element_types())
        shapes = [t.dims for t in self.operand_types if isinstance(t, TensorType)]
        if not shapes:
            return [element]
        return [TensorType.get(broadcast_shapes(self, self.OPERAND_NAMES, shapes), element)]


# ** unary **


class UnaryOp(ElementwiseOp):
    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ("input",)
    FLOATS_ONLY: ClassVar[bool] = True

    input = operand_def()
    output = result_def()


UNARY: list[type[UnaryOp]] = []
"""The unary ops, in the order in which they are defined below."""


def _unary(
    mnemonic: str, meaning: str, monotone: Monotone | None = None, cheap: bool = False, floats_only: bool = True
) -> type[UnaryOp]:
    """Define `ait.MNEMONIC` and add it to `UNARY`."""
    doc = f"""{meaning}

    ```mlir
    %y = ait.{mnemonic} %x : !ait.tensor<batch x 768 x f16>
    ```
    """
    facts = {"MONOTONE": monotone, "CHEAP": cheap, "FLOATS_ONLY": floats_only}
    name = "".join(p.capitalize() for p in mnemonic.split("_")) + "Op"
    UNARY.append(irdl_op_definition(type(name, (UnaryOp,), _namespace(mnemonic, doc, facts))))
    return UNARY[-1]


def _namespace(mnemonic: str, doc: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The body of the class of `ait.MNEMONIC`."""
    annotations = dict.fromkeys(facts, ClassVar[Any])
    return {"name": f"ait.{mnemonic}", "__doc__": doc, "__module__": __name__, "__annotations__": annotations, **facts}


NegOp = _unary("neg", "-x", "down", cheap=True, floats_only=False)
ExpOp = _unary("exp", "e to the power x.", "up")
LogOp = _unary("log", "Natural logarithm; -inf at 0, NaN below.", "up")
SqrtOp = _unary("sqrt", "Square root; NaN below 0.", "up")
RsqrtOp = _unary("rsqrt", "1 / sqrt(x); inf at 0.", "down")
TanhOp = _unary("tanh", "Hyperbolic tangent.", "up")
ErfOp = _unary("erf", "Gauss error function.", "up")
SigmoidOp = _unary("sigmoid", "1 / (1 + exp(-x)).", "up")
ReluOp = _unary("relu", "max(x, 0); NaN stays NaN.", "up", cheap=True, floats_only=False)
GeluOp = _unary("gelu", "x * (1 + erf(x / sqrt(2))) / 2 (arXiv:1606.08415).")
FastGeluOp = _unary("fast_gelu", "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2 (arXiv:1606.08415).")
SiluOp = _unary("silu", "x * sigmoid(x) (arXiv:1702.03118).")
AbsOp = _unary("abs", "x without its sign; of the least integer, that integer.", cheap=True, floats_only=False)
FloorOp = _unary("floor", "The largest whole number that is not above x.", "up", cheap=True)
RoundOp = _unary("round", "The nearest whole number, of two the even one.", "up", cheap=True)
SinOp = _unary("sin", "Sine of an angle in radians; NaN at infinity.")
CosOp = _unary("cos", "Cosine of an angle in radians; NaN at infinity.")
Log1pOp = _unary("log1p", "log(1 + x), exact near 0; -inf at -1, NaN below.", "up")
Expm1Op = _unary("expm1", "exp(x) - 1, exact near 0.", "up")
Exp2Op = _unary("exp2", "2 to the power x.", "up")
Log2Op = _unary("log2", "Logarithm to base 2, exact at powers of 2; -inf at 0, NaN below.", "up")
Log10Op = _unary("log10", "Logarithm to base 10; -inf at 0, NaN below.", "up")
TanOp = _unary("tan", "Tangent of an angle in radians; NaN at infinity.")
AsinOp = _unary("asin", "The angle from -pi/2 to pi/2 whose sine is x; NaN outside of -1 to 1.")
AcosOp = _unary("acos", "The angle from 0 to pi whose cosine is x; NaN outside of -1 to 1.")
AtanOp = _unary("atan", "The angle from -pi/2 to pi/2 whose tangent is x.", "up")
SinhOp = _unary("sinh", "Hyperbolic sine, exact near 0.", "up")
CoshOp = _unary("cosh", "Hyperbolic cosine.")
AsinhOp = _unary("asinh", "Inverse of the hyperbolic sine.", "up")
AcoshOp = _unary("acosh", "Inverse of the hyperbolic cosine, at least 0; NaN below 1.")
AtanhOp = _unary("atanh", "Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond.")
ErfcOp = _unary("erfc", "1 - erf(x), exact where that is nearly 0.", "down")
ErfinvOp = _unary("erfinv", "Inverse of the Gauss error function; infinite at -1 and 1, NaN beyond.")
LgammaOp = _unary("lgamma", "log(|gamma(x)|); inf at infinities and at whole numbers below 1.")
DigammaOp = _unary(
    "digamma", "Derivative of log(gamma(x)); NaN at whole numbers below 0, at a zero infinite with the other sign."
)


# ** binary **


class BinaryOp(ElementwiseOp):
    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ("lhs", "rhs")

    lhs = operand_def()
    rhs = operand_def()
    output = result_def()


BINARY: list[type[BinaryOp]] = []
"""The binary ops, in the order in which they are defined below."""


def _binary(
    mnemonic: str,
    meaning: str,
    commutative: bool = False,
    cheap: bool = True,
    floats_only: bool = False,
    integers_only: bool = False,
) -> type[BinaryOp]:
    doc = f"""{meaning} Broadcasts literal 1s and missing leading dims.

    ```mlir
    %y = ait.{mnemonic} %a, %b : !ait.tensor<batch x 768 x {"i32" if integers_only else "f16"}>
    ```
    """
    facts = {"CHEAP": cheap, "FLOATS_ONLY": floats_only, "INTEGERS_ONLY": integers_only}
    namespace = _namespace(mnemonic, doc, facts)
    if commutative:
        namespace["traits"] = traits_def(Commutative())
    name = "".join(p.capitalize() for p in mnemonic.split("_")) + "Op"
    BINARY.append(irdl_op_definition(type(name, (BinaryOp,), namespace)))
    return BINARY[-1]


AddOp = _binary("add", "Sum.", commutative=True)
SubOp = _binary("sub", "Difference.")
MulOp = _binary("mul", "Product.", commutative=True)
DivOp = _binary("div", "Quotient; on integers it truncates towards zero.", cheap=False)
MaxOp = _binary("max", "The larger one; NaN if one is NaN.", commutative=True)
MinOp = _binary("min", "The smaller one; NaN if one is NaN.", commutative=True)
PowOp = _binary("pow", "The left one to the power of the right one, as in C.", cheap=False, floats_only=True)
RemOp = _binary(
    "rem", "What division towards zero leaves, with the sign of the left one; of x by integer 0, x.", cheap=False
)
Atan2Op = _binary(
    "atan2", "The angle from -pi to pi of the point with y on the left and x on the right, as in C.",
    cheap=False, floats_only=True,
)  # fmt: skip
HypotOp = _binary(
    "hypot", "sqrt(a * a + b * b) without overflow; inf if one is infinite.",
    commutative=True, cheap=False, floats_only=True,
)  # fmt: skip
GcdOp = _binary(
    "gcd", "The greatest common divisor, at least 0; of 0 and x, |x|.",
    commutative=True, cheap=False, integers_only=True,
)  # fmt: skip
BitAndOp = _binary("bit_and", "The bits that are set in both.", commutative=True, integers_only=True)
BitOrOp = _binary("bit_or", "The bits that are set in one of both or in both.", commutative=True, integers_only=True)
BitXorOp = _binary("bit_xor", "The bits that are set in exactly one.", commutative=True, integers_only=True)
ShiftLeftOp = _binary("shift_left", "Bits moved up; 0 for a count below 0 or beyond the type.", integers_only=True)
ShiftRightOp = _binary(
    "shift_right", "Bits moved down, behind copies of the sign; only these for a count below 0 or beyond the type.",
    integers_only=True,
)  # fmt: skip

PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


@irdl_op_definition
class CompareOp(ElementwiseOp):
    """Compare two values; every comparison with NaN is false, except `ne`.

    ```mlir
    %y = ait.compare lt %a, %b : !ait.tensor<batch x 768 x i1>
    ```
    """

    name = "ait.compare"
    SYNTAX: ClassVar[Syntax] = (Word("predicate", PREDICATES), Operands())
    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ("lhs", "rhs")
    CHEAP: ClassVar[bool] = True

    lhs = operand_def()
    rhs = operand_def()
    predicate = prop_def(StringAttr)
    output = result_def()

    def __init__(self, predicate: str, lhs: Value, rhs: Value) -> None:
        self.set_up([lhs, rhs], predicate=predicate)

    def infer_element_type(self, elements: Sequence[Attribute]) -> Attribute:
        super().infer_element_type(elements)
        return i1


@irdl_op_definition
class WhereOp(ElementwiseOp):
    """Choose `a` where the condition holds, else `b`.

    ```mlir
    %y = ait.where %c, %a, %b : !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.where"
    TAKES_STORED: ClassVar[bool] = True
    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ("condition", "a", "b")
    CHEAP: ClassVar[bool] = True

    condition = operand_def()
    a = operand_def()
    b = operand_def()
    output = result_def()

    def infer_element_type(self, elements: Sequence[Attribute]) -> Attribute:
        if elements[0] != i1:
            raise self.fail(f"condition has element type {elements[0]}, expected i1")
        if elements[1] != elements[2]:
            raise self.fail(f"b has element type {elements[2]}, but a has {elements[1]}")
        return elements[1]


@irdl_op_definition
class ClampOp(ElementwiseOp):
    """Limit values to a range: min(max(x, MIN), MAX). Either bound may be omitted.

    NaN stays NaN. If MIN is above MAX, every value except NaN becomes MAX.

    ```mlir
    %y = ait.clamp %x min 0.0 max 6.0 : !ait.tensor<batch x 768 x f16>
    ```
    """

    name = "ait.clamp"
    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ("input",)
    MONOTONE: ClassVar[Monotone | None] = "up"
    CHEAP: ClassVar[bool] = True
    SYNTAX: ClassVar[Syntax] = (Operands(), Prop("min", SCALAR, optional=True), Prop("max", SCALAR, optional=True))

    input = operand_def()
    low = opt_prop_def(IntegerAttr | FloatAttr, prop_name="min")
    high = opt_prop_def(IntegerAttr | FloatAttr, prop_name="max")
    output = result_def()

    def __init__(self, input: Value, low: Number | None = None, high: Number | None = None) -> None:
        bounds = {name: number_attr(n) for name, n in (("min", low), ("max", high)) if n is not None}
        value = SSAValue.get(input)
        AitOp.__init__(self, operands=[value], properties=bounds, result_types=[value.type])

    @property
    def bounds(self) -> tuple[Number | None, Number | None]:
        """The lower and the upper bound; None for a missing bound."""
        found = [None if a is None else literal_values(a)[0] for a in (self.low, self.high)]
        return found[0], found[1]

    def infer_element_type(self, elements: Sequence[Attribute]) -> Attribute:
        element = super().infer_element_type(elements)
        if element == i1:
            raise self.fail("cannot clamp i1; use ait.where")
        if self.low is None and self.high is None:
            raise self.fail("needs a bound: min, max or both")
        for name, bound in zip(("min", "max"), self.bounds, strict=True):
            if bound is not None and (reason := self.find_mistake(bound, element)):
                raise self.fail(f"{name} {number_text(bound)} {reason}")
        return element

    @staticmethod
    def find_mistake(bound: Number, element: Attribute) -> str | None:
        """The error text for a number that cannot be a bound for an element type; None if it can."""
        if bound != bound:
            return "is no bound; leave it out, or use ait.constant for NaN"
        ends = integer_range(element)
        if ends is None:
            return None
        if not isinstance(bound, int):
            return f"has a point, but the input is {element}"
        return None if ends[0] <= bound <= ends[1] else f"does not fit in {element}"


@irdl_op_definition
class CastOp(ElementwiseOp):
    """Convert to another element type: to nearest even for floats, towards zero from float to integer, x != 0 to i1.

    ```mlir
    %y = ait.cast %x : !ait.tensor<batch x 768 x f32>
    ```
    """

    name = "ait.cast"
    TAKES_STORED: ClassVar[bool] = True
    OPERAND_NAMES: ClassVar[tuple[str, ...]] = ("input",)
    CHEAP: ClassVar[bool] = True
    WORK: ClassVar[int] = 0

    input = operand_def()
    output = result_def()

    def __init__(self, input: Value, element_type: Attribute) -> None:
        value = SSAValue.get(input)
        t = value.type
        result = TensorType.get(t.dims, element_type) if isinstance(t, TensorType) else element_type
        AitOp.__init__(self, operands=[value], result_types=[result])

    def infer_result_types(self) -> ResultTypes:
        self.element_types()
        source, result = self.input.type, self.output.type
        if not isinstance(source, TensorType):
            if not is_element_type(result):
                raise self.fail(f"the result {result} must be a scalar like the input {source}")
            return [result]
        if not isinstance(result, TensorType):
            raise self.fail(f"the result {result} must be a tensor like the input {source}")
        return [TensorType.get(source.dims, result.element_type)]


def cast_steps(value: Attribute, source: Attribute, target: Attribute) -> list[Attribute]:
    """The target types of the casts that convert a scalar of a region from element type `source` to element type
    `target`.

    `value` is the type of the scalar in the region, a compute type. Narrowing a float therefore takes two casts: one
    rounds it, one widens it again.
    """
    steps = [target] if compute_type(target) != target and source != target else []
    return steps if [value, *steps][-1] == compute_type(target) else [*steps, compute_type(target)]


SAME_BITS: dict[Attribute, Attribute] = {f32: i32, i32: f32, f64: i64, i64: f64}
"""For each element type that `ait.bitcast` takes, that of its result."""


@irdl_op_definition
class BitcastOp(UnaryOp):
    """The bits of a float as an integer of the same width, or those of an integer as a float: f32 and i32, f64 and i64.

    ```mlir
    %y = ait.bitcast %x : !ait.tensor<batch x 768 x i32>
    ```
    """

    name = "ait.bitcast"
    CHEAP: ClassVar[bool] = True
    WORK: ClassVar[int] = 0

    def infer_element_type(self, elements: Sequence[Attribute]) -> Attribute:
        if (found := SAME_BITS.get(elements[0])) is None:
            raise self.fail(f"takes {', '.join(map(str, SAME_BITS))}, got {elements[0]}")
        return found


ELEMENTWISE = (*UNARY, *BINARY, ClampOp, CompareOp, WhereOp, CastOp, BitcastOp)
OPS = (*ELEMENTWISE, YieldOp, FusedElementwiseOp)
