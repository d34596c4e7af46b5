"""Elementwise operators on dense and jagged operands: dense operands become jagged, with the same sequences.

A dense operand has the dims of the padded form, or as many rows as the sequences have together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.jagged import MakeJaggedOp, PaddedToJaggedOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.ait.view import ExpandOp, ReshapeOp
from ait_mlir.frontend.intvar import merge_symbols
from ait_mlir.frontend.jagged import JaggedIntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor


def jagged_dim_of(tensor: Tensor) -> JaggedIntVar | None:
    """The leading dim of a jagged tensor."""
    first = tensor.shape()[0] if tensor.rank else None
    return first if isinstance(first, JaggedIntVar) else None


def aligned(operator: Operator, operands: Sequence[Tensor]) -> list[Tensor]:
    """The operands, where a dense operand with the dims of the padded form or with all rows becomes a jagged tensor."""
    found = [(dim, t.rank) for t in operands if (dim := jagged_dim_of(t)) is not None]
    if not found:
        return list(operands)
    dim, rank = max(found, key=lambda pair: pair[1])
    return [t if jagged_dim_of(t) is not None else _taken(operator, t, dim, rank) for t in operands]


def _taken(operator: Operator, dense: Tensor, dim: JaggedIntVar, rank: int) -> Tensor:
    leading = [d.expr for d in dim.get_max_dense_shape()]
    beyond = dense.rank - (rank - 1)
    if beyond <= 0:
        return dense  # broadcasts to each row
    rest = dense.type.dims[beyond:]
    if all(d.as_int() == 1 for d in dense.type.dims[:beyond]):
        shape = TensorType.get(rest, dense.type.element_type)
        return operator.emit_one(ReshapeOp, [dense], result_types=[shape], symbols=dim.symbols)
    if beyond == 1 and dense.type.dims[0] is dim.expr:
        return dense
    if beyond == 1 and dense.type.dims[0] is dim.jagged.total and dim.offsets():
        shape = TensorType.get([dim.expr, *rest], dense.type.element_type)
        return operator.emit_one(MakeJaggedOp, [dense, *dim.offsets()], result_types=[shape], symbols=dim.symbols)
    full = TensorType.get([*leading, *rest], dense.type.element_type)
    if dense.type.dims != full.dims:
        dense = operator.emit_one(ExpandOp, [dense], result_types=[full], symbols=dim.symbols)
    return take_rows(operator, dense, dim, dim.offsets())


def take_rows(operator: Operator, dense: Tensor, dim: JaggedIntVar, offsets: Sequence[Tensor]) -> Tensor:
    """The rows of a dense tensor that belong to the sequences of a jagged dim."""
    rest = dense.type.dims[1 + len(dim.jagged.levels) :]
    return operator.emit_one(
        PaddedToJaggedOp,
        [dense, *offsets],
        result_types=[TensorType.get([dim.expr, *rest], dense.type.element_type)],
        symbols=merge_symbols(dense.symbols, dim.symbols),
    )
