"""Makes one grouped product of products that do not wait for each other.

Products at the same depth, the longest way from an input, do not wait for each other. The cost is linear in the number
of operations, up to the sort that puts them into order again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.grouped import LAYOUTS, GroupedGemmOp
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.fragments import offers
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import make_target

MAX_GROUP = 16
"""Products of one launch."""
GAIN = 1.3
"""How much faster one launch must be estimated to be: about the error of an estimate that is not fitted."""


@dataclass(frozen=True)
class GroupProductsPass(ModulePass):
    """Make one grouped product of gemms of known sizes that do not wait for each other and have the same epilogue.

    With a `target`, and the `arch` of one, only where estimates say that one launch is faster by far.
    """

    name = "group-products"

    target: str = ""
    arch: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = None if not self.target else make_target(self.target, self.arch)
        for graph in [g for g in op.ops if isinstance(g, GraphOp)]:
            group_products(graph.block, target)


def group_products(block: Block, target: Target | None = None) -> None:
    """Group the products of a block, those for which it pays on a target, and sort it again."""
    groups: dict[object, list[GemmOp]] = {}
    depth: dict[Operation, int] = {}
    for op in block.ops:
        depth[op] = 1 + max((depth[v.owner] for v in op.operands if isinstance(v.owner, Operation)), default=0)
        if isinstance(op, GemmOp) and (kind := group_kind(op)) is not None:
            groups.setdefault((depth[op], kind), []).append(op)
    found = [same[i : i + MAX_GROUP] for same in groups.values() for i in range(0, len(same), MAX_GROUP)]
    chosen = [group for group in found if len(group) > 1 and (target is None or pays(group, target))]
    for group in chosen:
        join(block, group)
    if chosen:
        sort(block)


def pays(group: Sequence[GemmOp], target: Target) -> bool:
    """Whether a grouped product is estimated to be faster than its products one after another, by the factor `GAIN`.

    No time of a grouped product is fitted to a card, and those of single ones are. So a launch counts on top of the
    estimate, and none is faster than its slowest product alone. On a CPU products of their own have packed weights, and
    on a GPU products of f32 have more kernels.
    """
    if not target.is_gpu or tensor_type(group[0].a).element_type not in (f16, bf16):
        return False
    alone = [best_seconds(op, target) for op in group]
    extras = [v for op in group for v in op.epilogue_operands]
    one = grouped(group, extras, group[0].epilogue.clone())
    together = max(best_seconds(one, target) + target.launch_seconds, *alone)
    one.erase()
    return GAIN * together < sum(alone)


def best_seconds(op: Operation, target: Target) -> float:
    """The estimate of the fastest way to run an operation; infinite where there is none."""
    return min((way.seconds for way in offers(op, target) if not way.only_timed), default=math.inf)


def grouped(group: Sequence[GemmOp], extras: Sequence[SSAValue], epilogue: Region) -> GroupedGemmOp:
    """The products of a group as one."""
    factors = [v for op in group for v in (op.a, op.b)]
    return GroupedGemmOp(group[0].layout.data, factors, extras, epilogue, [op.output.type for op in group])


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
    extras = [v for op in group for v in op.epilogue_operands]
    region = group[0].detach_region(group[0].epilogue)
    group[0].add_region(Region())
    one = grouped(group, extras, region)
    one.location = group[-1].location
    block.insert_op_after(one, group[-1])
    for op, result in zip(group, one.results, strict=True):
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
