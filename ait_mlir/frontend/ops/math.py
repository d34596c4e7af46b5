"""Elementwise functions under their plain names: `ops.tanh(x)` is `ops.elementwise(FuncEnum.TANH)(x)`."""

from __future__ import annotations

from collections.abc import Callable

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.ops.elementwise import BINARY, FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "abs", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "celu", "clamp_nan_to_num", "cos", "elu", "exp", "fast_gelu", "floor", "floor_div", "fmod", "gelu", "hardtanh",
    "leaky_relu", "log", "log1p", "max", "min", "nan_to_num", "pow", "reciprocal", "relu", "remainder", "sigmoid",
    "sign", "silu", "sin", "softplus", "softsign", "sqrt", "tanh",
]  # fmt: skip


def _named(func: FuncEnum) -> Callable[..., Tensor]:
    def apply(*args: Tensor | float) -> Tensor:
        try:
            return elementwise(func)(*args)
        except BuildError as error:
            if args:
                raise
            name = next(name for name, found in globals().items() if found is apply)
            raise BuildError(f"{error}; write ops.{name}({'x, y' if func in BINARY else 'x'})") from None

    apply.__doc__ = f"`elementwise(FuncEnum.{func.name})` of the operands and parameters."
    return apply


tanh, cos, sin = _named(FuncEnum.TANH), _named(FuncEnum.COS), _named(FuncEnum.SIN)
sign, abs, floor = _named(FuncEnum.SIGN), _named(FuncEnum.ABS), _named(FuncEnum.FLOOR)
log, log1p, exp = _named(FuncEnum.LOGE), _named(FuncEnum.LOG1P), _named(FuncEnum.EXP)
sqrt, reciprocal, pow = _named(FuncEnum.SQRT), _named(FuncEnum.RECIPROCAL), _named(FuncEnum.POW)
max, min, floor_div = _named(FuncEnum.MAX), _named(FuncEnum.MIN), _named(FuncEnum.FLOOR_DIV)
relu, leaky_relu, hardtanh = _named(FuncEnum.RELU), _named(FuncEnum.LRELU), _named(FuncEnum.HARDTANH)
sigmoid, silu, gelu = _named(FuncEnum.SIGMOID), _named(FuncEnum.SILU), _named(FuncEnum.GELU)
fast_gelu, elu, celu = _named(FuncEnum.FASTGELU), _named(FuncEnum.ELU), _named(FuncEnum.CELU)
softplus, softsign = _named(FuncEnum.SOFTPLUS), _named(FuncEnum.SOFTSIGN)
nan_to_num, clamp_nan_to_num = _named(FuncEnum.NAN_TO_NUM), _named(FuncEnum.CLAMP_NAN_TO_NUM)
fmod, bitwise_left_shift = _named(FuncEnum.REM), _named(FuncEnum.SHIFT_LEFT)
bitwise_right_shift, bitwise_not = _named(FuncEnum.SHIFT_RIGHT), _named(FuncEnum.BIT_NOT)
remainder = _named(FuncEnum.REMAINDER)
bitwise_and, bitwise_or, bitwise_xor = _named(FuncEnum.BIT_AND), _named(FuncEnum.BIT_OR), _named(FuncEnum.BIT_XOR)
