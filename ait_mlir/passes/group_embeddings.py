"""Makes one grouped embedding of embeddings that do not wait for each other (`grouping.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.index import EmbeddingOp, GroupedEmbeddingOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.ir.pipeline import TellingPass
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import make_target
from ait_mlir.passes.grouping import Grouping, group_ops


@dataclass(frozen=True)
class GroupEmbeddingsPass(TellingPass):
    """Make one grouped embedding of embeddings that do not wait for each other, of one element type and type of ids.

    With a `target`, and the `arch` of one, only where estimates say that one launch is faster by far.
    """

    name = "group-embeddings"

    target: str = ""
    arch: str = ""

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        target = None if not self.target else make_target(self.target, self.arch)
        return any([group_ops(graph.block, Embeddings(), target) for graph in module.ops if isinstance(graph, GraphOp)])


class Embeddings(Grouping[EmbeddingOp]):
    """Lookups in tables of any sizes. The kernel of a group is that of one, so half a launch suffices as margin."""

    op_class = EmbeddingOp
    margin = 0.5
    most = 64

    def kind(self, op: EmbeddingOp) -> object | None:
        """None for one that is selected already."""
        if "kernel" in op.attributes:
            return None
        return tensor_type(op.table).element_type, tensor_type(op.ids).element_type

    def pays(self, group: Sequence[EmbeddingOp], target: Target) -> bool:
        """On a CPU a launch costs next to nothing."""
        return target.is_gpu and super().pays(group, target)

    def grouped(self, group: Sequence[EmbeddingOp]) -> GroupedEmbeddingOp:
        return GroupedEmbeddingOp([v for op in group for v in (op.table, op.ids)])
