"""Makes one grouped product of products that do not wait for each other.

Products at the same depth, the longest way from an input, do not wait for each other. The cost is linear in the number
of operations, up to the sort that puts them into order again.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.grouped import LAYOUTS, GroupedGemmOp
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.types import tensor_type

MAX_GROUP = 16
"""Products of one launch."""


@dataclass(frozen=True)
class GroupProductsPass(ModulePass):
    """Make one grouped product of gemms of known sizes that do not wait for each other and have the same epilogue."""

    name = "group-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in [g for g in op.ops if isinstance(g, GraphOp)]:
            group_products(graph.block)


def group_products(block: Block) -> None:
    """Group the products of a block, and sort it again."""
    groups: dict[object, list[GemmOp]] = {}
    depth: dict[Operation, int] = {}
    for op in block.ops:
        depth[op] = 1 + max((depth[v.owner] for v in op.operands if isinstance(v.owner, Operation)), default=0)
        if isinstance(op, GemmOp) and (kind := group_kind(op)) is not None:
            groups.setdefault((depth[op], kind), []).append(op)
    found = [same[i : i + MAX_GROUP] for same in groups.values() for i in range(0, len(same), MAX_GROUP)]
    for group in [group for group in found if len(group) > 1]:
        join(block, group)
    if any(len(group) > 1 for group in found):
        sort(block)


def group_kind(op: GemmOp) -> object | None:
    """What products of a group have in common; None for one that joins no group: of more than two dims, of unknown
    sizes, or selected already."""
    types = [tensor_type(v) for v in (op.a, op.b, op.output)]
    if op.layout.data not in LAYOUTS or any(t.rank != 2 or t.static_shape() is None for t in types):
        return None
    if "kernel" in op.attributes or any(tensor_type(v).rank != 1 for v in op.epilogue_operands):
        return None
    extras = tuple(tensor_type(v).element_type for v in op.epilogue_operands)
    return op.layout, types[0].element_type, types[2].element_type, extras, region_key(op.epilogue)


def join(block: Block, group: list[GemmOp]) -> None:
    """One grouped product in the place of the last one of a group."""
    factors = [v for op in group for v in (op.a, op.b)]
    extras = [v for op in group for v in op.epilogue_operands]
    region = group[0].detach_region(group[0].epilogue)
    group[0].add_region(Region())
    types = [op.output.type for op in group]
    grouped = GroupedGemmOp(group[0].layout.data, factors, extras, region, types)
    grouped.location = group[-1].location
    block.insert_op_after(grouped, group[-1])
    for op, result in zip(group, grouped.results, strict=True):
        result.name_hint = op.output.name_hint
        op.output.replace_all_uses_with(result)
        op.detach()
        op.erase()


def sort(block: Block) -> None:
    """Put operations behind what they read; otherwise they keep their order."""
    ops = list(block.ops)
    place = {op: i for i, op in enumerate(ops)}
    readers: dict[Operation, list[Operation]] = {op: [] for op in ops}
    missing: dict[Operation, int] = {}
    for op in ops:
        sources = {v.owner for v in op.operands if isinstance(v.owner, Operation)}
        missing[op] = len(sources)
        for source in sources:
            readers[source].append(op)
    ready = [place[op] for op in ops if not missing[op]]
    heapify(ready)
    order: list[Operation] = []
    while ready:
        op = ops[heappop(ready)]
        order.append(op)
        for reader in readers[op]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, place[reader])
    assert len(order) == len(ops), "grouped products wait for each other"
    for op in order:
        op.detach()
        block.add_op(op)
