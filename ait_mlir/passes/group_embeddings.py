"""Merges independent embeddings into one grouped embedding (`grouping.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block

from ait_mlir.dialects.ait.index import EmbeddingOp, GroupedEmbeddingOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.kernels import Target
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import Grouping, group_ops


@dataclass(frozen=True)
class GroupEmbeddingsPass(ByEstimatePass):
    """Merge independent embeddings with the same element type and the same type of ids into one grouped embedding.

    With a target, only where estimates say that one launch is faster by far.
    """

    name = "group-embeddings"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        return group_ops(block, Embeddings(), target)


class Embeddings(Grouping[EmbeddingOp]):
    """Groups of lookups in tables of any sizes. A group must be faster by half a launch; its kernel is a lookup's."""

    op_class = EmbeddingOp
    margin = 0.5
    most = 64

    def kind(self, op: EmbeddingOp) -> object | None:
        """The element types of table and ids; None for an embedding with a selected kernel."""
        if "kernel" in op.attributes:
            return None
        return tensor_type(op.table).element_type, tensor_type(op.ids).element_type

    def pays(self, group: Sequence[EmbeddingOp], target: Target) -> bool:
        """Whether a group is estimated to be faster; never on a CPU, where a launch costs almost nothing."""
        return target.is_gpu and super().pays(group, target)

    def grouped(self, group: Sequence[EmbeddingOp]) -> GroupedEmbeddingOp:
        return GroupedEmbeddingOp([v for op in group for v in (op.table, op.ids)])
