"""Elementwise operators: `elementwise(FuncEnum.ADD)(x, y)`, comparisons, `where`, `cast`, `clamp`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr

from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import IntVar, maximum, minimum
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor, normalize_dtype


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
    RECIPROCAL = auto()
    HARDTANH = auto()
    LRELU = auto()
    SOFTSIGN = auto()


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
}

COMPOSITES: dict[FuncEnum, Callable[[Tensor], Tensor]] = {
    FuncEnum.ABS: lambda x: binary(FuncEnum.MAX, x, -x),
    FuncEnum.RECIPROCAL: lambda x: 1.0 / x,
    FuncEnum.HARDTANH: lambda x: binary(FuncEnum.MIN, binary(FuncEnum.MAX, x, -1.0), 1.0),
    FuncEnum.LRELU: lambda x: binary(FuncEnum.MAX, x, x * 0.01),
    FuncEnum.SOFTSIGN: lambda x: x / (1.0 + elementwise(FuncEnum.ABS)(x)),
}

BINARY = {FuncEnum.ADD, FuncEnum.SUB, FuncEnum.MUL, FuncEnum.DIV, FuncEnum.MAX, FuncEnum.MIN}


class elementwise(Operator):
    """Apply a function to each element, with broadcasting; one operand of a binary function may be a number.

    >>> y = ops.elementwise(FuncEnum.ADD)(x, bias)
    """

    def __init__(self, func_enum: FuncEnum):
        super().__init__()
        if func_enum not in OPS and func_enum not in COMPOSITES:
            known = ", ".join(FuncEnum.__members__)
            raise BuildError(f"elementwise: {func_enum} is not supported; expected one of {known}")
        self.func = func_enum
        self.name = f"elementwise({func_enum.name})"
        self.extra["func"] = func_enum

    def __call__(self, *args: Tensor | float) -> Tensor:
        tensors = [a for a in args if isinstance(a, Tensor)]
        self.begin(*tensors)
        arity = 2 if self.func in BINARY else 1
        if len(args) != arity or not tensors:
            raise self.fail(f"takes {arity} operand{'s' * (arity > 1)}, one of them a tensor; found {len(args)}")
        if self.func in COMPOSITES:
            return self.finish(COMPOSITES[self.func](tensors[0]))
        operands = [a if isinstance(a, Tensor) else scalar(a, tensors[0]) for a in args]
        return self.finish(self.emit_one(OPS[self.func], operands))


def scalar(value: float, like: Tensor) -> Tensor:
    """A constant of rank 0 with the dtype of `like`."""
    return Tensor(shape=[], dtype=like.dtype(), value=value)


def binary(func: FuncEnum, a: Tensor | float, b: Tensor | float) -> Tensor:
    return elementwise(func)(a, b)


class relational(Operator):
    """Compare two tensors, or a tensor and a number, element by element; the result is bool."""

    predicate = ""

    def __call__(self, left: Tensor | float, right: Tensor | float) -> Tensor:
        tensors = [a for a in (left, right) if isinstance(a, Tensor)]
        self.begin(*tensors)
        if not tensors:
            raise self.fail("one of the operands must be a tensor")
        operands = [a if isinstance(a, Tensor) else scalar(a, tensors[0]) for a in (left, right)]
        return self.finish(self.emit_one(ait.CompareOp, operands, {"predicate": StringAttr(self.predicate)}))


def _relational(name: str) -> type[relational]:
    return type(name, (relational,), {"predicate": name, "__doc__": relational.__doc__, "__module__": __name__})


eq, ne = _relational("eq"), _relational("ne")
lt, le = _relational("lt"), _relational("le")
gt, ge = _relational("gt"), _relational("ge")


class where(Operator):
    """`input_tensor` where the condition holds, else `other_tensor`; either may be a number, both with `dtype`."""

    def __call__(
        self, condition: Tensor, input_tensor: Tensor | float, other_tensor: Tensor | float, dtype: str = ""
    ) -> Tensor:
        values = [a for a in (input_tensor, other_tensor) if isinstance(a, Tensor)]
        self.begin(condition, *values)
        if not values and not dtype:
            raise self.fail('two numbers have no dtype; say which, for instance dtype="float16"')
        kind = values[0].dtype() if values else normalize_dtype(dtype)
        operands = [
            a if isinstance(a, Tensor) else Tensor(shape=[], dtype=kind, value=a) for a in (input_tensor, other_tensor)
        ]
        return self.finish(self.emit_one(ait.WhereOp, [condition, *operands]))


class cast(Operator):
    """Convert to another dtype."""

    def __call__(self, x: Tensor, dtype: str = "bfloat16") -> Tensor:
        self.begin(x)
        type = TensorType.get(x.type.dims, BY_NAME[normalize_dtype(dtype)].ir)
        return self.finish(self.emit_one(ait.CastOp, [x], result_types=[type]))


class clamp(Operator):
    """`min(max(x, min_value), max_value)`; a bound that is None does not bound."""

    def __call__(self, x: Tensor, min_value: float | None = None, max_value: float | None = None) -> Tensor:
        self.begin(x)
        if min_value is None and max_value is None:
            raise self.fail("needs a bound: min_value, max_value or both")
        y = x if min_value is None else binary(FuncEnum.MAX, x, min_value)
        return self.finish(y if max_value is None else binary(FuncEnum.MIN, y, max_value))


class int_elementwise(Operator):
    """Arithmetic on dims: ADD, SUB, MUL, DIV (rounds down), MAX, MIN."""

    FUNCTIONS: ClassVar[dict[FuncEnum, Callable[[IntVar, IntVar], IntVar]]] = {
        FuncEnum.ADD: lambda a, b: a + b,
        FuncEnum.SUB: lambda a, b: a - b,
        FuncEnum.MUL: lambda a, b: a * b,
        FuncEnum.DIV: lambda a, b: a // b,
        FuncEnum.MAX: maximum,
        FuncEnum.MIN: minimum,
    }

    def __init__(self, func_enum: FuncEnum):
        super().__init__()
        if func_enum not in self.FUNCTIONS:
            raise BuildError(f"int_elementwise: {func_enum} is not supported; expected ADD, SUB, MUL, DIV, MAX or MIN")
        self.func = func_enum

    def __call__(self, a: IntVar, b: IntVar) -> IntVar:
        return self.FUNCTIONS[self.func](a, b)
