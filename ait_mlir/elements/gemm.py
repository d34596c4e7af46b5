"""Elements of products of a matrix and a vector, which read each element of the matrix once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.elementwise import MulOp
from ait_mlir.dialects.ait.gemm import BmmOp, ContractionOp, GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index
from ait_mlir.rewrites.conv import follows_from_params


def has_vector(op: ContractionOp) -> bool:
    """Whether one factor of a product of floats is a vector (or a batch of vectors), and the other factor is not a
    weight.

    Products with weights have better kernels, which read the weights before the previous launch ends.
    """
    if not is_float(tensor_type(op.a).element_type):
        return False
    sizes = op.extents()
    matrix = op.a if sizes.n.as_int() == 1 else op.b if sizes.m.as_int() == 1 else None
    return matrix is not None and len(op.results) == 1 and not follows_from_params(matrix)


@elements_of(GemmOp, BmmOp, when=has_vector)
def _(op: ContractionOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    lead, (row, column) = index[:-2], _in_order(op, 2, *index[-2:])

    def factor(at: int, rows: Index, columns: Index) -> SSAValue:
        value = op.operands[at]
        return w.element(value, broadcast(value, [*lead, *_in_order(op, at, rows, columns)]))

    def read(taps: Sequence[Expr]) -> SSAValue:
        return w.op(MulOp, factor(0, row, taps[0]), factor(1, taps[0], column))

    def total() -> SSAValue:
        return w.fold("add", [op.split_a()[2]], read)

    if not op.epilogue.blocks:
        return total()
    beside = [partial(w.element, v, broadcast(v, index)) for v in op.epilogue_operands]
    return w.inline(op.epilogue.block, [total, *beside], position)


def _in_order(op: ContractionOp, at: int, rows: Index, columns: Index) -> tuple[Index, Index]:
    """The indices (row, column) of a factor, A (0) or B (1), or of the result (2), in the order in which it stores its
    dims.
    """
    return (rows, columns) if op.layout.data[at] == "r" else (columns, rows)
