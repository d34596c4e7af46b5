"""Merges independent norms into one grouped norm (`grouping.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block

from ait_mlir.dialects.ait.grouped import GroupedNormOp
from ait_mlir.dialects.ait.norm import LayerNormOp, NormOp
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import product
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.grouped import has_rows
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import MAX_GROUP, Grouping, group_ops

SPREAD = 4
"""The rows of one launch are less than this many times as long as its shortest, as all use the same number of
threads."""


@dataclass(frozen=True)
class GroupNormsPass(ByEstimatePass):
    """Merge independent layer norms, or rms norms, with the same number of rows into one grouped norm.

    With a target, only where estimates say that one launch is faster by far.
    """

    name = "group-norms"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        return group_ops(block, Norms(), target)


class Norms(Grouping[NormOp]):
    """Groups of norms over one dim with the same number of rows, `eps` (added) and epilogue, and without a prologue."""

    op_class = NormOp
    margin = 0.5

    def kind(self, op: NormOp) -> object | None:
        if op.axes.value.data != 1 or op.prologue.blocks or "kernel" in op.attributes or "bounded" in op.properties:
            return None
        t, result = tensor_type(op.input), tensor_type(op.results[0])
        extras = [tensor_type(v) for v in op.epilogue_operands]
        return (
            type(op),
            product(t.dims[:-1]),
            t.element_type,
            result.element_type,
            op.eps,
            op.scale is None,
            op.bias is None,
            tuple((extra.element_type, has_rows(extra.dims, result.dims)) for extra in extras),
            region_key(op.epilogue),
        )

    def parts(self, same: list[NormOp]) -> list[list[NormOp]]:
        """Groups whose rows differ in length by less than the factor `SPREAD`, each in the order of the graph."""
        place = {op: i for i, op in enumerate(same)}
        found: list[list[NormOp]] = []
        shortest = 0
        for length, op in sorted(((row_length(op), op) for op in same), key=lambda item: (item[0], place[item[1]])):
            if not found or length >= SPREAD * shortest or len(found[-1]) == MAX_GROUP:
                found.append([])
                shortest = max(1, length)
            found[-1].append(op)
        return [sorted(group, key=lambda op: place[op]) for group in found]

    def pays(self, group: Sequence[NormOp], target: Target) -> bool:
        """Whether a group is estimated to be faster; never on a CPU, where a launch costs almost nothing. On a GPU it
        must be faster by half a launch: a single norm has threads that fit its rows, and grouped norms were not timed
        yet."""
        return target.is_gpu and super().pays(group, target)

    def grouped(self, group: Sequence[NormOp]) -> GroupedNormOp:
        first = group[0]
        return GroupedNormOp(
            "layer" if isinstance(first, LayerNormOp) else "rms",
            [op.input for op in group],
            [op.scale for op in group if op.scale is not None],
            [op.bias for op in group if op.bias is not None],
            first.eps,
            [v for op in group for v in op.epilogue_operands],
            first.epilogue.clone(),
            [op.results[0].type for op in group],
        )


def row_length(op: NormOp) -> int:
    """The elements of a row, with each dim at its hint or else its maximum."""
    return tensor_type(op.input).dims[-1].evaluate(estimate_env(scope_of(op)))
