"""Merges operations of one kind that do not depend on each other into one operation.

Operations at the same depth, which is the longest path from an input, do not depend on each other. The cost is linear
in the number of operations, except for the sort that puts them into order again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar, Generic, TypeVar

from xdsl.ir import Block, Operation

from ait_mlir.lowering.fragments import offers
from ait_mlir.lowering.kernels import Target

MAX_GROUP = 16
"""Operations of one launch, unless a kind of operations says otherwise."""
GAIN = 1.3
"""How much faster one launch must be estimated to be: about the error of an estimate that is not fitted."""

OpT = TypeVar("OpT", bound=Operation)


class Grouping(ABC, Generic[OpT]):
    """What may be a group, and what it becomes. Each member has one result."""

    op_class: type[OpT]
    margin: ClassVar[float] = 0.0
    """Launches that count on top of the estimate of a group, because its members have better estimates or kernels."""

    most: ClassVar[int] = MAX_GROUP
    """Operations of a group."""

    @abstractmethod
    def kind(self, op: OpT) -> object | None:
        """What the members of a group have in common; None for an operation that joins no group."""

    @abstractmethod
    def grouped(self, group: Sequence[OpT]) -> Operation:
        """The group as one operation with the results of its members, in their order; the members stay as they are."""

    def parts(self, same: list[OpT]) -> list[list[OpT]]:
        """Groups of operations of one kind and depth."""
        return [same[i : i + self.most] for i in range(0, len(same), self.most)]

    def pays(self, group: Sequence[OpT], target: Target) -> bool:
        """Whether one launch is estimated to be faster than the launches of the members, by the factor `GAIN`.

        A group is never faster than its slowest member.
        """
        block, alone = group[-1].parent, [best_seconds(op, target) for op in group]
        assert block is not None
        one = self.grouped(group)
        block.insert_op_after(one, group[-1])  # where it sees the dims
        together = max(best_seconds(one, target) + self.margin * target.launch_seconds, *alone)
        one.detach()
        one.erase()
        return GAIN * together < sum(alone)


def group_ops(block: Block, grouping: Grouping[OpT], target: Target | None = None) -> bool:
    """Group operations of a block, those for which it pays on a target, and sort it again; whether there were any."""
    groups: dict[object, list[OpT]] = {}
    depth: dict[Operation, int] = {}
    for op in block.ops:
        depth[op] = 1 + max((depth[v.owner] for v in op.operands if isinstance(v.owner, Operation)), default=0)
        if isinstance(op, grouping.op_class) and (kind := grouping.kind(op)) is not None:
            groups.setdefault((depth[op], kind), []).append(op)
    found = [part for same in groups.values() for part in grouping.parts(same)]
    chosen = [group for group in found if len(group) > 1 and (target is None or grouping.pays(group, target))]
    for group in chosen:
        join(block, group, grouping.grouped(group))
    if chosen:
        sort(block)
    return bool(chosen)


def best_seconds(op: Operation, target: Target) -> float:
    """The estimate of the fastest way to run an operation; infinite where there is none."""
    return min((way.seconds for way in offers(op, target) if not way.only_timed), default=math.inf)


def join(block: Block, group: Sequence[Operation], one: Operation) -> None:
    """One operation in the place of the last one of a group."""
    one.location = group[-1].location
    block.insert_op_after(one, group[-1])
    for op, result in zip(group, one.results, strict=True):
        result.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(result)
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
    assert len(order) == len(ops), "grouped operations wait for each other"
    for op in order:
        op.detach()
        block.add_op(op)
