"""Replaces operations that compute the same value by one operation.

Operations are numbered in program order: two get the same number if they are equal and their operands have the same
numbers (global value numbering; Alpern, Wegman and Zadeck, POPL 1988). The cost is linear in the number of operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Commutative

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import BindsDim, ViewLike
from ait_mlir.ir.pipeline import TellingPass
from ait_mlir.rewrites.engine.driver import is_pure


@dataclass(frozen=True)
class RemoveDuplicatesPass(TellingPass):
    """Replace operations that compute the same value by one operation, and remove operations without users.

    Equal views and constants are not shared. They cost nothing, and a pattern that requires a view with one use would
    not match a shared view.
    """

    name = "remove-duplicates"

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        changed = False
        for graph in [g for g in module.ops if isinstance(g, GraphOp)]:
            blocks = [graph.block]
            while blocks:
                block = blocks.pop()
                changed |= share_values(block)
                blocks += [region.block for inner in block.ops if isinstance(inner, ScanOp) for region in inner.regions]
        return changed


@dataclass
class Known:
    """The operations so far. Their keys are compared only if class and operands are the same."""

    alone: dict[object, Operation] = field(default_factory=dict[object, Operation])
    """The first operation for each class and operands."""
    several: dict[object, Operation] = field(default_factory=dict[object, Operation])
    """Operations by key and operands, if several have the same class and operands."""

    def like(self, op: Operation, operands: object) -> Operation:
        """The first operation that computes the same value as `op`; `op` itself if there is none."""
        place = type(op), operands
        first = self.alone.setdefault(place, op)
        if first is op:
            return op
        self.several.setdefault((op_key(first), operands), first)
        return self.several.setdefault((op_key(op), operands), op)


def is_new_state(value: SSAValue) -> bool:
    """Whether a value is an output in place of an input; it can be that for only one input."""
    return any(isinstance(use.operation, OutputOp) and use.operation.in_place_of is not None for use in value.uses)


def share_values(block: Block) -> bool:
    """Replace operations of a block that compute the same value by one, and remove operations without users; returns
    whether anything changed."""
    changed = False
    for op, first in _repeated(block, {}):
        if not isinstance(op, ViewLike | ConstantOp) and not any(is_new_state(result) for result in op.results):
            for old, new in zip(op.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            changed = True
    for op in reversed(list(block.ops)):
        if op.results and is_pure(op) and all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()
            changed = True
    return changed


def value_numbers(block: Block) -> dict[SSAValue, SSAValue]:
    """For each value of a block that an earlier one equals, views and constants included, the first equal value."""
    numbers: dict[SSAValue, SSAValue] = {}
    for _ in _repeated(block, numbers):
        pass
    return numbers


def _repeated(block: Block, numbers: dict[SSAValue, SSAValue]) -> Iterator[tuple[Operation, Operation]]:
    """Each op that computes the same values as an earlier one, and the first of these; adds their results to `numbers`.
    """
    known = Known()
    for op in list(block.ops):
        if not is_pure(op) or isinstance(op, ParamOp | ScanOp | BindsDim):
            continue
        operands = tuple(numbers.get(value, value) for value in op.operands)
        if op.has_trait(Commutative):
            operands = frozenset(operands) if len(set(operands)) == len(operands) else operands
        first = known.like(op, operands)
        if first is op:
            continue
        numbers.update(zip(op.results, first.results, strict=True))
        yield op, first
