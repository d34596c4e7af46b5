"""Elementwise operators: `elementwise(FuncEnum.ADD)(x, y)`, comparisons, `where`, `cast`, `clamp`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import ClassVar, Self, overload

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Operand, Writer
from ait_mlir.compositions import functions
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import BY_NAME, is_float
from ait_mlir.dialects.ait.numbers import number_attr
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.emit import number_of
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import IntImm, IntVar, IntVarTensor, as_dim, maximum, minimum
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.align import aligned
from ait_mlir.frontend.ops.operands import as_number, common_dtype, in_dtype, in_one_dtype
from ait_mlir.frontend.tensor import Tensor, normalize_dtype
from ait_mlir.rewrites.engine.numbers import stored

__all__ = [
    "FuncEnum", "cast", "clamp", "elementwise", "eq", "fused_elementwise", "ge", "gt", "int_elementwise", "le",
    "lt", "ne", "where",
]  # fmt: skip


class FuncEnum(Enum):
    """The functions that `elementwise` applies."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    MAX = auto()
    MIN = auto()
    NEG = auto()
    EXP = auto()
    LOGE = auto()
    SQRT = auto()
    RSQRT = auto()
    TANH = auto()
    ERF = auto()
    SIGMOID = auto()
    RELU = auto()
    GELU = auto()
    FASTGELU = auto()
    SILU = auto()
    ABS = auto()
    FLOOR = auto()
    SIN = auto()
    COS = auto()
    LOG1P = auto()
    EXPM1 = auto()
    LOG2 = auto()
    LOG10 = auto()
    TAN = auto()
    ASIN = auto()
    ACOS = auto()
    ATAN = auto()
    SINH = auto()
    COSH = auto()
    ASINH = auto()
    ACOSH = auto()
    ATANH = auto()
    ERFC = auto()
    ERFINV = auto()
    LGAMMA = auto()
    DIGAMMA = auto()
    POW = auto()
    REM = auto()
    ATAN2 = auto()
    HYPOT = auto()
    GCD = auto()
    BIT_AND = auto()
    BIT_OR = auto()
    BIT_XOR = auto()
    SHIFT_LEFT = auto()
    SHIFT_RIGHT = auto()
    BIT_NOT = auto()
    REMAINDER = auto()
    FLOOR_DIV = auto()
    SIGN = auto()
    RECIPROCAL = auto()
    HARDTANH = auto()
    HARDSWISH = auto()
    LRELU = auto()
    ELU = auto()
    CELU = auto()
    SOFTPLUS = auto()
    SOFTSIGN = auto()
    NAN_TO_NUM = auto()
    CLAMP_NAN_TO_NUM = auto()


OPS: dict[FuncEnum, type[AitOp]] = {
    FuncEnum.ADD: ait.AddOp,
    FuncEnum.SUB: ait.SubOp,
    FuncEnum.MUL: ait.MulOp,
    FuncEnum.DIV: ait.DivOp,
    FuncEnum.MAX: ait.MaxOp,
    FuncEnum.MIN: ait.MinOp,
    FuncEnum.NEG: ait.NegOp,
    FuncEnum.EXP: ait.ExpOp,
    FuncEnum.LOGE: ait.LogOp,
    FuncEnum.SQRT: ait.SqrtOp,
    FuncEnum.RSQRT: ait.RsqrtOp,
    FuncEnum.TANH: ait.TanhOp,
    FuncEnum.ERF: ait.ErfOp,
    FuncEnum.SIGMOID: ait.SigmoidOp,
    FuncEnum.RELU: ait.ReluOp,
    FuncEnum.GELU: ait.GeluOp,
    FuncEnum.FASTGELU: ait.FastGeluOp,
    FuncEnum.SILU: ait.SiluOp,
    FuncEnum.ABS: ait.AbsOp,
    FuncEnum.FLOOR: ait.FloorOp,
    FuncEnum.SIN: ait.SinOp,
    FuncEnum.COS: ait.CosOp,
    FuncEnum.LOG1P: ait.Log1pOp,
    FuncEnum.EXPM1: ait.Expm1Op,
    FuncEnum.LOG2: ait.Log2Op,
    FuncEnum.LOG10: ait.Log10Op,
    FuncEnum.TAN: ait.TanOp,
    FuncEnum.ASIN: ait.AsinOp,
    FuncEnum.ACOS: ait.AcosOp,
    FuncEnum.ATAN: ait.AtanOp,
    FuncEnum.SINH: ait.SinhOp,
    FuncEnum.COSH: ait.CoshOp,
    FuncEnum.ASINH: ait.AsinhOp,
    FuncEnum.ACOSH: ait.AcoshOp,
    FuncEnum.ATANH: ait.AtanhOp,
    FuncEnum.ERFC: ait.ErfcOp,
    FuncEnum.ERFINV: ait.ErfinvOp,
    FuncEnum.LGAMMA: ait.LgammaOp,
    FuncEnum.DIGAMMA: ait.DigammaOp,
    FuncEnum.REM: ait.RemOp,
    FuncEnum.ATAN2: ait.Atan2Op,
    FuncEnum.HYPOT: ait.HypotOp,
    FuncEnum.GCD: ait.GcdOp,
    FuncEnum.SHIFT_LEFT: ait.ShiftLeftOp,
    FuncEnum.SHIFT_RIGHT: ait.ShiftRightOp,
}

BINARY = {
    *(FuncEnum.ADD, FuncEnum.SUB, FuncEnum.MUL, FuncEnum.DIV, FuncEnum.MAX, FuncEnum.MIN),
    *(
        FuncEnum.POW,
        FuncEnum.FLOOR_DIV,
        FuncEnum.REM,
        FuncEnum.REMAINDER,
        FuncEnum.BIT_AND,
        FuncEnum.BIT_OR,
        FuncEnum.BIT_XOR,
    ),
    *(FuncEnum.SHIFT_LEFT, FuncEnum.SHIFT_RIGHT, FuncEnum.ATAN2, FuncEnum.HYPOT, FuncEnum.GCD),
}


ROUND_NUMBERS = {*(FuncEnum.MAX, FuncEnum.MIN, FuncEnum.POW, FuncEnum.REM, FuncEnum.REMAINDER), FuncEnum.HYPOT}
"""The functions of f16 and bf16 for which a number is rounded to that type first; others compute with it in f32."""
DIVISIONS = {FuncEnum.DIV, FuncEnum.REM, FuncEnum.REMAINDER, FuncEnum.FLOOR_DIV}
OF_FLOATS = {FuncEnum.HARDSWISH, FuncEnum.LRELU, FuncEnum.ELU, FuncEnum.CELU, FuncEnum.SOFTPLUS}


class elementwise(Operator):
    """Apply a function to each element, with broadcasting.

    >>> y = ops.elementwise(FuncEnum.ADD)(x, bias)

    Operands may be numbers. Some functions take parameters after the operands, such as the slope of LRELU: numbers or
    tensors. Bool operands count as 0 and 1 beside other dtypes. ADD, SUB, MUL and DIV of dims as values give dims as
    values.
    """

    def __init__(self, func_enum: FuncEnum):
        self.func = func_enum
        self.label = f"elementwise({func_enum.name})"
        self._attrs["func"] = func_enum

    @overload
    def __call__(self, *args: Tensor | float) -> Tensor: ...
    @overload
    def __call__(self, *args: IntVarTensor) -> IntVarTensor: ...
    def __call__(self, *args: Tensor | float | IntVarTensor) -> Tensor | IntVarTensor:
        if args and all(isinstance(a, IntVarTensor) for a in args) and self.func in int_elementwise.FUNCTIONS:
            return int_elementwise(self.func)(*(a for a in args if isinstance(a, IntVarTensor)))
        given = [as_number(self, a) for a in args]
        tensors = [a for a in given if isinstance(a, Tensor)]
        self.begin(*tensors)
        arity = 2 if self.func in BINARY else 1
        function, least, most = COMPOSITES.get(self.func, (None, 0, 0))
        if not arity + least <= len(args) <= arity + most:
            count = f"{least} to {most}" if least else f"up to {most}"
            parameters = f", then {count} parameter{'s' * (most > 1)}" if most else ""
            raise self.fail(f"takes {arity} operand{'s' * (arity > 1)}{parameters}; found {len(args)}")
        _same_dtype(self, [a for a in given[:arity] if isinstance(a, Tensor)], "the operands have different dtypes")
        operands = in_one_dtype(self, given, rounds=self.func in ROUND_NUMBERS)
        self._attrs["args"] = operands[:arity]
        if self.func in DIVISIONS and isinstance(given[1], Tensor):
            operands[1] = self.written(functions.divisor, operands[1])  # before it is made as large as the other
        operands = aligned(self, operands)
        if function is None:
            return self.finish(self.emit_one(OPS[self.func], operands))
        if self.func in OF_FLOATS and not is_float(operands[0].type.element_type):
            raise self.fail("needs floats; ops.cast converts")
        of_numbers = arity == 1 or not tensors  # then the first operand becomes a constant, and the others stay numbers
        return self.write(
            function,
            *(
                t if isinstance(a, Tensor) or (of_numbers and i < arity) else a
                for i, (a, t) in enumerate(zip(given, operands, strict=True))
            ),
        )


class fused_elementwise(Operator):
    """One operator in place of several elementwise operators that were called; returns their results. For models that
    name the ops to fuse: the passes fuse them in any case. It replaces the operators in `src_ops` and `dst_ops` of
    `inputs` (the tensors that they read from outside) and `outputs` (the tensors that others read), which may be left
    out.
    """

    def __init__(
        self,
        elementwise_ops: Sequence[elementwise],
        inputs: Sequence[Tensor] | None = None,
        outputs: Sequence[Tensor] | None = None,
    ):
        if not elementwise_ops or any(not op.outputs for op in elementwise_ops):
            raise BuildError("fused_elementwise: needs elementwise operators that have been called")
        made = [t for op in elementwise_ops for t in op.outputs]
        read = [t for op in elementwise_ops for t in op.inputs]
        free = list(dict.fromkeys(t for t in read if t not in made))
        last = [t for t in made if t not in read]
        for what, given, found in (("inputs", inputs, free), ("outputs", outputs, made)):
            if given is not None and (wrong := [t for t in given if t not in found]):
                raise BuildError(f"fused_elementwise: {wrong[0].describe()} is none of the {what} of the operators")
        self.inputs, self.outputs = free, last if outputs is None else list(outputs)
        if any(t.type.dims != self.outputs[0].type.dims for t in self.outputs):
            raise BuildError(f"fused_elementwise: results of different shapes, {self.outputs[0].describe()} and others")
        self._attrs["elementwise_ops"] = list(elementwise_ops)
        self.take_the_place_of(elementwise_ops)

    def __call__(self) -> list[Tensor]:
        return self.outputs


def _same_dtype(operator: Operator, operands: Sequence[Tensor], message: str) -> None:
    """Raise unless the tensors have one dtype; bool counts as any."""
    found = sorted({operand.dtype() for operand in operands} - {"bool"})
    if len(found) > 1:
        raise operator.fail(f"{message}: found {' and '.join(found)}; ops.cast converts")


class relational(Operator):
    """Compare two tensors, or a tensor and a number, element by element; the result is bool."""

    predicate = ""

    def __call__(self, left: Tensor | float, right: Tensor | float) -> Tensor:
        given = [as_number(self, a) for a in (left, right)]
        self.begin(*(a for a in given if isinstance(a, Tensor)))
        _same_dtype(self, self.inputs, "Type promotions are not supported")
        operands = aligned(self, in_one_dtype(self, given))
        return self.finish(self.emit_one(ait.CompareOp, operands, {"predicate": self.predicate}))


def _relational(name: str) -> type[relational]:
    return type(name, (relational,), {"predicate": name, "__doc__": relational.__doc__, "__module__": __name__})


eq, ne = _relational("eq"), _relational("ne")
lt, le = _relational("lt"), _relational("le")
gt, ge = _relational("gt"), _relational("ge")


class where(Operator):
    """`input_tensor` where the condition holds, else `other_tensor`; either may be a number, both with `dtype`."""

    def __call__(
        self, condition: Tensor | float, input_tensor: Tensor | float, other_tensor: Tensor | float, dtype: str = ""
    ) -> Tensor:
        given = [as_number(self, a) for a in (input_tensor, other_tensor)]
        values = [a for a in given if isinstance(a, Tensor)]
        self.begin(*values)
        if not isinstance(condition, Tensor):
            raise self.fail(f"condition needs to be a tensor, found {condition!r}")
        self.begin(condition, *values)
        if condition.dtype() != "bool":
            raise self.fail(f"condition needs to be a bool tensor, found {condition.describe()}")
        if not values and not dtype:
            raise self.fail('dtype needs to be provided for scalars, for instance dtype="float16"')
        _same_dtype(self, values, "Expect tensor of the same dtype")
        kind = common_dtype(values) if values else normalize_dtype(dtype)
        operands = [in_dtype(self, a, kind) for a in given]
        return self.finish(self.emit_one(ait.WhereOp, aligned(self, [condition, *operands])))


class cast(Operator):
    """Convert to another dtype. `ops.cast(x, "float32")` is `ops.cast()(x, "float32")`."""

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, x: Tensor, dtype: str = "bfloat16") -> Tensor: ...
    def __new__(cls, x: Tensor | None = None, dtype: str = "bfloat16") -> Self | Tensor:
        made = super().__new__(cls)
        if x is None:
            return made
        made.__init__()
        return made(x, dtype)

    def __call__(self, x: Tensor, dtype: str = "bfloat16") -> Tensor:
        type = TensorType.get(x.type.dims, BY_NAME[normalize_dtype(dtype)].ir)
        return self.finish(self.emit_one(ait.CastOp, [x], result_types=[type]))


class clamp(Operator):
    """`min(max(x, min_value), max_value)`; a bound that is None does not bound, NaN stays NaN.

    Bounds are numbers, or tensors that broadcast with x.
    """

    def __call__(
        self, x: Tensor, min_value: Tensor | float | None = None, max_value: Tensor | float | None = None
    ) -> Tensor:
        self.begin(x)
        if min_value is None and max_value is None:
            raise self.fail("needs a bound: min_value, max_value or both")
        bounds: dict[str, float | None] = {}
        for name, func, bound in (("min", FuncEnum.MAX, min_value), ("max", FuncEnum.MIN, max_value)):
            number = None if bound is None else as_number(self, bound)
            if isinstance(number, Tensor):
                x, number = elementwise(func)(x, number), None
            bounds[name] = number
        if all(bound is None for bound in bounds.values()):
            return self.finish(x)
        element = x.type.element_type
        numbers = {n: number_of(element, bound) for n, bound in bounds.items() if bound is not None}
        properties = {n: number_attr(stored(bound, element)) for n, bound in numbers.items()}
        return self.finish(self.emit_one(ait.ClampOp, [x], properties))


class int_elementwise(Operator):
    """Arithmetic on dims as values: ADD, SUB, MUL, DIV (rounds down), MAX, MIN of two or more, from left to right."""

    FUNCTIONS: ClassVar[dict[FuncEnum, Callable[[IntVar, IntVar], IntVar]]] = {
        FuncEnum.ADD: lambda a, b: a + b,
        FuncEnum.SUB: lambda a, b: a - b,
        FuncEnum.MUL: lambda a, b: a * b,
        FuncEnum.DIV: lambda a, b: a // b if isinstance(a // b, IntImm) else a / b,
        FuncEnum.MAX: maximum,
        FuncEnum.MIN: minimum,
    }

    def __init__(self, func_enum: FuncEnum):
        if func_enum not in self.FUNCTIONS:
            raise BuildError(f"int_elementwise: {func_enum} is not supported; expected ADD, SUB, MUL, DIV, MAX or MIN")
        self.func = func_enum

    def __call__(self, *args: IntVar | int) -> IntVarTensor:
        if len(args) < 2:
            raise BuildError(f"int_elementwise({self.func.name}): takes two or more dims, found {len(args)}")
        return IntVarTensor(functools.reduce(self.FUNCTIONS[self.func], map(as_dim, args)))


def _hardtanh(w: Writer, x: SSAValue, low: Operand = -1.0, high: Operand = 1.0) -> SSAValue:
    return functions.clamp(w, x, low, high)


COMPOSITES: dict[FuncEnum, tuple[Callable[..., SSAValue], int, int]] = {
    FuncEnum.POW: (functions.power, 0, 0),
    FuncEnum.REMAINDER: (functions.remainder, 0, 0),
    FuncEnum.FLOOR_DIV: (functions.floor_of_quotient, 0, 0),
    FuncEnum.BIT_AND: (functions.bit_and, 0, 0),
    FuncEnum.BIT_OR: (functions.bit_or, 0, 0),
    FuncEnum.BIT_XOR: (functions.bit_xor, 0, 0),
    FuncEnum.BIT_NOT: (functions.invert, 0, 0),
    FuncEnum.SIGN: (functions.sign, 0, 0),
    FuncEnum.RECIPROCAL: (functions.reciprocal, 0, 0),
    FuncEnum.HARDTANH: (_hardtanh, 0, 2),
    FuncEnum.HARDSWISH: (functions.hard_swish, 0, 0),
    FuncEnum.LRELU: (functions.leaky_relu, 0, 1),
    FuncEnum.ELU: (functions.elu, 0, 1),
    FuncEnum.CELU: (functions.celu, 0, 1),
    FuncEnum.SOFTPLUS: (functions.softplus, 0, 2),
    FuncEnum.SOFTSIGN: (functions.softsign, 0, 0),
    FuncEnum.NAN_TO_NUM: (functions.nan_to_num, 0, 3),
    FuncEnum.CLAMP_NAN_TO_NUM: (functions.clamp_nan_to_num, 2, 3),
}
"""Each function that is more than one op, and how many parameters it takes, at least and at most."""


def _arithmetic(func: str, operands: Sequence[Tensor | float]) -> Tensor:
    return elementwise(FuncEnum[func])(*operands)


Tensor.arithmetic = _arithmetic
