"""Merges operations of one kind that do not depend on each other into one operation.

Operations at the same depth (the longest path from an input) do not depend on each other. The cost is linear in the
number of operations, except for the final sort.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar, Generic, TypeVar

from xdsl.ir import Block, Operation

from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target

MAX_GROUP = 16
"""Most operations of a group, unless a `Grouping` sets another number."""
GAIN = 1.3
"""The factor by which one launch must be estimated to be faster: about the error of an unfitted estimate."""

OpT = TypeVar("OpT", bound=Operation)


class Grouping(ABC, Generic[OpT]):
    """Defines which operations may form a group, and the operation that replaces it. Each member has one result."""

    op_class: type[OpT]
    margin: ClassVar[float] = 0.0
    """Launches added to the estimate of a group, if its members have better estimates or kernels."""

    most: ClassVar[int] = MAX_GROUP
    """Most operations of a group."""

    @abstractmethod
    def kind(self, op: OpT) -> object | None:
        """A key that all members of a group share; None for an operation that joins no group."""

    @abstractmethod
    def grouped(self, group: Sequence[OpT]) -> Operation:
        """A new operation that computes the results of all members, in their order; the members are not changed."""

    def parts(self, same: list[OpT]) -> list[list[OpT]]:
        """Groups made from operations of one kind and depth."""
        return [same[i : i + self.most] for i in range(0, len(same), self.most)]

    def pays(self, group: Sequence[OpT], target: Target) -> bool:
        """Whether one launch is estimated to be faster than the launches of the members, by the factor `GAIN`.

        A group is never faster than its slowest member.
        """
        block, alone = group[-1].parent, [best_seconds(op, target) for op in group]
        assert block is not None
        one = self.grouped(group)
        block.insert_op_after(one, group[-1])  # in the block, where the dims are declared
        together = max(best_seconds(one, target) + self.margin * target.launch_seconds, *alone)
        one.detach()
        one.erase()
        return GAIN * together < sum(alone)


def group_ops(block: Block, grouping: Grouping[OpT], target: Target | None = None) -> bool:
    """Merge groups of operations of a block, with a target only where it is faster, and sort the block again; returns
    whether anything changed."""
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
    """The estimated seconds of the fastest kernel for an operation; infinite if there is none."""
    return min((c.seconds for c in candidates_of(op, target) if not c.only_timed), default=math.inf)


def join(block: Block, group: Sequence[Operation], one: Operation) -> None:
    """Replace a group by one operation at the place of the group's last."""
    one.location = group[-1].location
    block.insert_op_after(one, group[-1])
    for op, result in zip(group, one.results, strict=True):
        result.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(result)
        op.detach()
        op.erase()


def sort(block: Block) -> None:
    """Sort a block so that operations come after their operands; otherwise they keep their order."""
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
