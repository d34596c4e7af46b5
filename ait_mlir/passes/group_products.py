"""Merges independent products into one grouped product (`grouping.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import bf16, f16
from xdsl.ir import Block

from ait_mlir.dialects.ait.dtypes import is_computed_float, is_float8
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.grouped import LAYOUTS, GroupedGemmOp
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.kernels import Target
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import Grouping, group_ops


@dataclass(frozen=True)
class GroupProductsPass(ByEstimatePass):
    """Merge independent gemms of known sizes with the same epilogue into one grouped product.

    With a target, only where estimates say that one launch is faster by far.
    """

    name = "group-products"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        return group_ops(block, Products(), target)


class Products(Grouping[GemmOp]):
    """Groups of gemms of two dims with the same layout, element types and epilogue."""

    op_class = GemmOp
    margin = 1.0

    def pays(self, group: Sequence[GemmOp], target: Target) -> bool:
        """Whether a group is estimated to be faster. False on a CPU, where single products have packed weights, and for
        f32, for which single products have more kernels. The group must be faster by one launch, because its estimate
        is not fitted to a card, unlike the estimates of single products.
        """
        narrow = tensor_type(group[0].a).element_type in (f16, bf16)
        return target.is_gpu and narrow and super().pays(group, target)

    def grouped(self, group: Sequence[GemmOp]) -> GroupedGemmOp:
        factors = [v for op in group for v in (op.a, op.b)]
        extras = [v for op in group for v in op.epilogue_operands]
        types = [op.output.type for op in group]
        return GroupedGemmOp(group[0].layout.data, factors, extras, group[0].epilogue.clone(), types)

    def kind(self, op: GemmOp) -> object | None:
        """Layout, element types and epilogue. None for products of integers, of more than two dims, of unknown sizes,
        with several results, with a result of 8-bit floats, or with a selected kernel."""
        types = [tensor_type(v) for v in (op.a, op.b, op.output)]
        if op.layout.data not in LAYOUTS or any(t.rank != 2 or t.static_shape() is None for t in types):
            return None
        if "kernel" in op.attributes or any(tensor_type(v).rank != 1 for v in op.epilogue_operands):
            return None
        if len(op.results) > 1 or not is_computed_float(types[0].element_type) or is_float8(types[2].element_type):
            return None
        extras = tuple(tensor_type(v).element_type for v in op.epilogue_operands)
        return op.layout, types[0].element_type, types[2].element_type, extras, region_key(op.epilogue)
