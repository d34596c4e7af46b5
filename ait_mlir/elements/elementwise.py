"""Elements of elementwise ops, which broadcast their operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.elementwise import ELEMENTWISE
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index


def broadcast(value: SSAValue, index: Sequence[Index]) -> list[Index]:
    """The index of an operand for an index of the result to whose shape it broadcasts."""
    dims = tensor_type(value).dims
    behind = index[len(index) - len(dims) :]
    return [const(0) if size.as_int() == 1 else i for i, size in zip(behind, dims, strict=True)]


@elements_of(*ELEMENTWISE)
def _(op: Operation, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    return w.scalar(op, [w.element(v, broadcast(v, index)) for v in op.operands])


@elements_of(FusedElementwiseOp)
def _(op: FusedElementwiseOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    return w.inline(op.body.block, [partial(w.element, v, broadcast(v, index)) for v in op.operands], position)
