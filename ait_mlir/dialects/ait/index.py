"""Ops that move elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.traits import Cost, Pure
from ait_mlir.dialects.ait.types import TensorType, shape_text
from ait_mlir.dims import Expr, minimum


@irdl_op_definition
class EmbeddingOp(Cost, AitOp):
    """Rows of a table: the result at [..., :] is `table[ids[...], :]`; ids outside the table have no meaning.

    ```mlir
    %y = ait.embedding %table, %ids : !ait.tensor<batch x seq x 768 x f16>
    ```
    """

    name = "ait.embedding"
    WORK: ClassVar[int] = 0

    table = operand_def(TensorType)
    ids = operand_def(TensorType)
    output = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, table: SSAValue | Operation, ids: SSAValue | Operation) -> None:
        table = SSAValue.get(table)
        super().__init__(operands=[table, ids], result_types=[table.type])
        (inferred,) = self.infer_result_types()
        self.results[0]._type = inferred  # pyright: ignore[reportPrivateUsage]

    def bytes_read(self, position: int) -> Expr:
        whole = super().bytes_read(position)
        return minimum(whole, self.bytes_written(0)) if position == 0 else whole  # the rows that ids name

    def infer_result_types(self) -> Sequence[Attribute]:
        table = self.expect_tensor(self.operands[0], "the table")
        ids = self.expect_tensor(self.operands[1], "ids")
        if table.rank != 2:
            raise self.fail(f"the table must have 2 dims, got {shape_text(table.dims)}")
        if ids.element_type not in (i32, i64):
            raise self.fail(f"ids must be i32 or i64, got {ids.element_type}")
        return [TensorType.get((*ids.dims, table.dims[1]), table.element_type)]


OPS = (EmbeddingOp,)
