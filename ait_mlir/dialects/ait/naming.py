"""The derived name of an op, `gemm_rcr_bias_gelu`: for dumps, kernel names and the AITemplate-shaped API."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.norm import NormOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import tensor_type

MAX_PARTS = 6


def derived_name(op: Operation) -> str:
    """A name from the op, its layout and the ops of its region; `add` of a vector is called `bias`."""
    base = _bare(op)
    if isinstance(op, NormOp) and op.prologue.blocks:
        base = "_".join([*_region_parts(op.prologue.block, []), base])
    if isinstance(op, HasEpilogue):
        parts = [base, op.layout.data] if isinstance(op, ContractionOp) else [base]
        if op.epilogue.blocks:
            ranks = [tensor_type(v).rank for v in op.epilogue_operands]
            parts += _region_parts(op.epilogue.block, ranks, op.SUMS)
        return "_".join(parts)
    if isinstance(op, FusedElementwiseOp):
        return "_".join(["fused", *_region_parts(op.body.block, [])])
    return base


def _bare(op: Operation) -> str:
    """The op's name as an identifier: `add` for `ait.add`, `mine_rotate` for `mine.rotate` from outside."""
    return op.name.removeprefix("ait.").replace(".", "_")


def _region_parts(block: Block, operand_ranks: list[int], first: int = 1) -> list[str]:
    vectors = {a for a, rank in zip(block.args[first:], operand_ranks, strict=False) if rank == 1}
    parts: list[str] = []
    for inner in block.ops:
        if inner.name in ("ait.yield", "ait.constant"):
            continue
        is_bias = inner.name == "ait.add" and any(v in vectors for v in inner.operands)
        parts.append("bias" if is_bias else _bare(inner))
    return parts if len(parts) <= MAX_PARTS else [*parts[: MAX_PARTS - 1], f"{len(parts) - MAX_PARTS + 1}more"]
