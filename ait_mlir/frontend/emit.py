"""Making `ait` ops for the builder: checked in the scope of their dims, and detached until the graph is built."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import ConstantOp, ParamOp
from ait_mlir.dialects.ait.dtypes import integer_range, is_float
from ait_mlir.dialects.ait.syntax import properties_of
from ait_mlir.dialects.ait.types import DimsAttr, TensorType
from ait_mlir.dims import DimError, Scope
from ait_mlir.frontend.assume import EQUATIONS, AssumingScope
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import Symbols, scope_from


def make_op(
    op_class: type[AitOp],
    operands: Sequence[SSAValue],
    symbols: Symbols,
    properties: Mapping[str, Any] | None = None,
    result_types: Sequence[Attribute] | None = None,
    regions: int | Sequence[Region] = 0,
    num_results: int = 1,
) -> AitOp:
    """An op on `operands`. The types of its `num_results` results are inferred unless given; `regions` are regions or a
    number of empty ones. Properties are attributes or the Python values that the op's clauses convert.

    The op is verified as in a graph that declares `symbols`. Raises `BuildError` with the op's own message.
    """
    op = op_class.create(
        operands=operands,
        properties=properties_of(op_class, op_class.SYNTAX, properties or {}),
        result_types=result_types or [operands[0].type] * num_results,
        regions=[Region() for _ in range(regions)] if isinstance(regions, int) else regions,
    )
    _check(op, symbols, infer=result_types is None)
    return op


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


def _check(op: AitOp, symbols: Symbols, infer: bool) -> None:
    """Verify an op; one that fails only because dims are not proved to be equal assumes that they are."""
    try:
        _check_in(op, scope_from(symbols), infer)
    except BuildError:
        assuming = AssumingScope(symbols)
        try:
            _check_in(op, assuming, infer)
        except BuildError:
            assuming.equations.clear()
        if not assuming.equations:
            raise
        setattr(op, EQUATIONS, tuple(assuming.equations))


def _check_in(op: AitOp, scope: Scope, infer: bool) -> None:
    holder = ModuleOp([op])
    holder.properties["dims"] = DimsAttr(scope)
    try:
        if infer:
            op.infer()
        else:
            op.verify_()
    except (VerifyException, DimError) as error:
        raise BuildError(str(error)) from None
    finally:
        op.detach()
