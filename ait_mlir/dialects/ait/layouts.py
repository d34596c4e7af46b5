"""Checks of declared strides of a caller's tensors."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr

from ait_mlir.dialects.ait.base import AitOp, check_expressions
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.strided import ZERO, are_apart, extent
from ait_mlir.dialects.ait.types import MAX_BYTES, Shape, ShapeAttr, ShapedType, shape_text
from ait_mlir.dims import DimError, Scope


def check_strides(op: AitOp, scope: Scope, what: str, t: ShapedType, strides: Shape) -> None:
    """Raise unless strides may be declared for a tensor."""
    check_expressions(op, scope, strides, f"the strides of {what}")
    if (problem := problem_of(scope, what, t, strides)) is not None:
        raise op.fail(problem)


def problem_of(scope: Scope, what: str, t: ShapedType, strides: Shape) -> str | None:
    """The reason why strides may not be declared for a tensor: wrong rank, possibly negative, elements not proved to be
    disjoint, or too much memory. None if they may."""
    text = shape_text(strides)
    if len(strides) != t.rank:
        return f"{what} has strides {text}, expected {t.rank} of them for {t}"
    if bound := sorted({name for e in strides for name in scope.host_symbols(e)}):
        return f"{what} has strides {text} with dim {bound[0]!r}, which an op binds"
    if any(scope.upper(e) is not e for e in t.dims):
        return f"{what} has strides, but {t} has a dim that an op binds or that is jagged"
    if below := [e for e in strides if not scope.le(ZERO, e)]:
        return f"stride {below[0]} of {what} is not proved to be at least 0"
    if not are_apart(t.dims, strides, scope):
        return f"strides {text} of {what} are not proved to give each element of {t} a place of its own"
    if not _is_addressable(scope, t, strides):
        return f"strides {text} of {what} spread {t} over more than 2^48 bytes"
    return None


def _is_addressable(scope: Scope, t: ShapedType, strides: Shape) -> bool:
    """Whether no constant or coefficient in a tensor's bytes and strides exceeds `MAX_BYTES`."""
    try:
        sizes = [extent(t.dims, strides, scope) * BY_IR[t.element_type].bytes, *strides]
    except DimError:  # a number beyond 64 bits
        return False
    return all(e.largest_coefficient() <= MAX_BYTES for e in sizes)


def strides_by_name(strides: Mapping[str, Shape]) -> DictionaryAttr | None:
    return DictionaryAttr({name: ShapeAttr(shape) for name, shape in strides.items()}) if strides else None
