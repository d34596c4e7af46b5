"""Lets an all-reduce add a residual to its sum and normalise that, where nothing else reads the sum."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.collective import AllReduceOp, ReducedNormOp
from ait_mlir.dialects.ait.elementwise import AddOp, YieldOp
from ait_mlir.dialects.ait.norm import LayerNormOp, NormOp, RmsNormOp
from ait_mlir.lowering.kernels.collective import joins_norms
from ait_mlir.lowering.target import Target
from ait_mlir.passes.by_estimate import ByEstimatePass


@dataclass(frozen=True)
class JoinNormsPass(ByEstimatePass):
    """Make one `ait.reduced_norm` of a sum over all members, the addition of a residual, and a norm.

    With a target, only on cards whose kernel does all of it in one launch; with `peer-memory=false` none has one.
    """

    name = "join-norms"
    peer_memory: bool = True

    def rewrite(self, block: Block, target: Target | None) -> bool:
        target = target and replace(target, peer_memory=self.peer_memory)
        return any([_join(op, target) for op in list(block.ops) if isinstance(op, LayerNormOp | RmsNormOp)])


def _join(norm: LayerNormOp | RmsNormOp, target: Target | None) -> bool:
    """Replace a norm of a residual and of a sum over all members; returns whether it was one."""
    if norm.epilogue.blocks or "kernel" in norm.attributes or len(norm.prologue_operands) != 1:
        return False
    if isinstance(norm, RmsNormOp) and norm.bounded is not None:
        return False
    values, alike = (norm.input, norm.prologue_operands[0]), {norm.input.type, *norm.result_types}
    if len({norm.prologue_operands[0].type, *alike}) != 1 or not _adds(norm.prologue):
        return False
    reduced = next((op for value in values if (op := _summed(value, norm)) is not None), None)
    if reduced is None:
        return False
    residual = values[0] if values[1] is reduced.output else values[1]
    factors = [value for value in (norm.scale, norm.bias) if value is not None]
    segments = [1, 1, int(norm.scale is not None), int(norm.bias is not None)]
    properties: dict[str, Attribute] = {
        "axes": reduced.axes,
        "mesh": reduced.mesh,
        "trailing": norm.axes,
        "eps": norm.eps,
        "operandSegmentSizes": DenseArrayBase.from_list(i32, segments),
    }
    if isinstance(norm, LayerNormOp):
        properties["centred"] = UnitAttr()
    joined = ReducedNormOp.create(
        operands=[reduced.input, residual, *factors], result_types=[norm.input.type] * 2, properties=properties
    )
    if target is not None and not joins_norms(joined, target):
        joined.erase()
        return False
    joined.location = norm.location
    block = norm.parent
    assert block is not None
    block.insert_op_before(joined, norm)
    for old, new in zip(norm.results, joined.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for op in (norm, reduced):
        op.detach()
        op.erase()
    return True


def _adds(region: Region) -> bool:
    """Whether all that a prologue of two arguments yields is their sum."""
    if not region.blocks:
        return False
    block = region.blocks[0]
    ops: list[Operation] = list(block.ops)
    if len(ops) != 2 or not isinstance(ops[0], AddOp) or not isinstance(ops[1], YieldOp):
        return False
    added, yields = ops
    return set(added.operands) == set(block.args) and all(value is added.results[0] for value in yields.operands)


def _summed(value: SSAValue, norm: NormOp) -> AllReduceOp | None:
    """The all-reduce that sums up a value, if only the norm reads it, and once."""
    op = value.owner
    if not isinstance(op, AllReduceOp) or op.kind.data != "sum" or "kernel" in op.attributes:
        return None
    uses = list(value.uses)
    return op if len(uses) == 1 and uses[0].operation is norm else None
