"""Weights and constants of the builder, which are detached until the graph is built."""

from __future__ import annotations

import math

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, ParamOp
from ait_mlir.dialects.ait.dtypes import integer_range, is_float
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.errors import BuildError


def make_param(type: TensorType) -> SSAValue:
    """A weight without a name: the graph builder later sets the name of its tensor."""
    return ParamOp("", type).output


def make_constant(type: TensorType, value: float) -> SSAValue:
    """A constant of `type`, filled with `value`."""
    return ConstantOp(number_of(type.element_type, value), type).output


def number_of(element_type: Attribute, value: float) -> float | int:
    """`value` as a number of an element type; `BuildError` for an integer that is not whole or out of range."""
    if is_float(element_type):
        return float(value)
    ends = integer_range(element_type) or (-math.inf, math.inf)
    if not math.isfinite(value) or value != int(value) or not ends[0] <= value <= ends[1]:
        raise BuildError(f"a constant of {element_type} cannot be {value}")
    return int(value)
