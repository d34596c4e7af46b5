"""Bags of rows of a table."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.jagged import BAG_KINDS, EmbeddingBagOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def embedding_bag(c: Call) -> list[SSAValue]:
    """The rows of each bag combined; PyTorch's further results are for training."""
    table, weights = c.tensor("weight"), c.optional("per_sample_weights")
    if not is_float(tensor_type(table).element_type):
        raise NotSupported(f"the table is {tensor_type(table).element_type}, expected a floating-point type")
    properties: dict[str, Attribute] = {"kind": StringAttr(BAG_KINDS[int(c["mode"])])}
    padding = c["padding_idx"]
    # from the end; in the default overload, -1 is no padding
    if padding is not None and padding < 0 and "padding_idx" in str(c.node.target):
        padding += tensor_type(table).dims[0].as_int() or 0
    if padding is not None and padding >= 0:
        properties["padding"] = IntegerAttr(int(padding), i64)
    if c["include_last_offset"]:
        properties["closed"] = UnitAttr()
    operands = [table, c.tensor("indices"), c.tensor("offsets"), *([] if weights is None else [weights])]
    return [c.w.op(EmbeddingBagOp, *operands, properties=properties)]


ROWS: dict[str, Row] = {
    "aten._embedding_bag.default aten._embedding_bag_forward_only.default aten.embedding_bag.default": embedding_bag,
    "aten.embedding_bag.padding_idx": embedding_bag,
}
