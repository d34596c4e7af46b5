"""Bags of rows of a table."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.jagged import EmbeddingBagOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp, SliceOp
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint


@pattern()
def bags_of_one(p: PatternBuilder) -> None:
    """embedding_bag(table, ids, [0, 1, 2, ...]) = embedding(table, ids): a bag for each id"""
    table, ids, offsets = p.values(3)
    root = p.op("ait.embedding_bag", [table, ids, offsets])
    p.require("keeps_all_ids", root)
    p.require("same_shape", ids, offsets)
    p.require("counts_up", offsets)
    p.replace(root, p.new("ait.embedding", [table, ids]))


BAGS = patterns(bags_of_one)


# ** constraints **


@constraint
def keeps_all_ids(root: EmbeddingBagOp) -> bool:
    """The bags ignore no id, and the last bag ends with the last id."""
    return root.padding is None and root.closed is None


@constraint
def counts_up(value: SSAValue) -> bool:
    """The value is the constant 0, 1, 2 ..., or a slice of it that starts at 0."""
    while True:
        owner = value.owner
        if isinstance(owner, SliceOp) and all(x.as_int() == 0 for x in owner.offsets.data):
            if tensor_type(owner.input).rank != 1:
                return False
        elif not isinstance(owner, ReshapeOp):
            break
        value = owner.operands[0]
    if not isinstance(owner, ConstantOp):
        return False
    numbers = owner.values()
    whole = tensor_type(value).num_elements().as_int() == len(numbers)  # not one number for all elements
    return whole and all(number == i for i, number in enumerate(numbers))
