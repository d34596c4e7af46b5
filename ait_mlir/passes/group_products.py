"""Makes one grouped product of products that do not wait for each other (`grouping.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.grouped import LAYOUTS, GroupedGemmOp
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.ir.pipeline import TellingPass
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import make_target
from ait_mlir.passes.grouping import Grouping, group_ops


@dataclass(frozen=True)
class GroupProductsPass(TellingPass):
    """Make one grouped product of gemms of known sizes that do not wait for each other and have the same epilogue.

    With a `target`, and the `arch` of one, only where estimates say that one launch is faster by far.
    """

    name = "group-products"

    target: str = ""
    arch: str = ""

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        target = None if not self.target else make_target(self.target, self.arch)
        return any([group_ops(graph.block, Products(), target) for graph in module.ops if isinstance(graph, GraphOp)])


class Products(Grouping[GemmOp]):
    """Gemms of two dims, of one layout and one epilogue."""

    op_class = GemmOp
    margin = 1.0

    def pays(self, group: Sequence[GemmOp], target: Target) -> bool:
        """On a CPU products of their own have packed weights, and on a GPU products of f32 have more kernels.

        No time of a grouped product is fitted to a card, and those of single ones are: a launch counts for that.
        """
        narrow = tensor_type(group[0].a).element_type in (f16, bf16)
        return target.is_gpu and narrow and super().pays(group, target)

    def grouped(self, group: Sequence[GemmOp]) -> GroupedGemmOp:
        factors = [v for op in group for v in (op.a, op.b)]
        extras = [v for op in group for v in op.epilogue_operands]
        types = [op.output.type for op in group]
        return GroupedGemmOp(group[0].layout.data, factors, extras, group[0].epilogue.clone(), types)

    def kind(self, op: GemmOp) -> object | None:
        """None also for products of more than two dims, of unknown sizes, or selected already."""
        types = [tensor_type(v) for v in (op.a, op.b, op.output)]
        if op.layout.data not in LAYOUTS or any(t.rank != 2 or t.static_shape() is None for t in types):
            return None
        if "kernel" in op.attributes or any(tensor_type(v).rank != 1 for v in op.epilogue_operands):
            return None
        extras = tuple(tensor_type(v).element_type for v in op.epilogue_operands)
        return op.layout, types[0].element_type, types[2].element_type, extras, region_key(op.epilogue)
