"""Elements of padded tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const, maximum, minimum
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements


@elements_of(PadOp)
def _(op: PadOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    dims, mode = tensor_type(op.input).dims, op.mode.data
    sides = zip(op.before.data, op.behind(), strict=True)
    found: list[Index] = []
    for i, size, (before, behind) in zip(index, dims, sides, strict=True):
        if before.as_int() == behind.as_int() == 0:
            found.append(i)
            continue
        if not isinstance(i, Expr):
            raise NoElements("a padded dim is read at a value")
        found.append(source(mode, i - before, size))
    if mode == "constant":
        if any(isinstance(i, SSAValue) for i in found):
            raise NoElements("an index that is a value and outside of its dim would read the padding")
        return w.element_or(op.input, found, op.fill)
    return w.element(op.input, found)


def source(mode: str, at: Expr, size: Expr) -> Expr:
    """The input index for a position that may lie outside of the input."""
    if mode == "reflect":
        last = size - 1
        mirrored = maximum(at, -at)
        return last - maximum(last - mirrored, mirrored - last)
    if mode == "replicate":
        return maximum(minimum(at, size - 1), const(0))
    return at % size if mode == "circular" else at
