"""Elementwise functions under their plain names: `ops.tanh(x)` is `ops.elementwise(FuncEnum.TANH)(x)`."""

from __future__ import annotations

from collections.abc import Callable

from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor


def _named(func: FuncEnum) -> Callable[..., Tensor]:
    def apply(*args: Tensor | float) -> Tensor:
        return elementwise(func)(*args)

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
