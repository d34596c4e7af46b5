"""Replaces scans of few steps by the ops of their steps, which can then fuse with their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp, tensor_ops
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp, SliceOp
from ait_mlir.dims import const
from ait_mlir.ir.pipeline import TellingPass

MAX_OPS = 64
"""The most computing ops of an unrolled scan; a longer scan stays a loop, which saves compile time and code."""


def unrolled_ops(scan: ScanOp) -> int | None:
    """The number of computing ops of the unrolled scan; None if its length is dynamic."""
    length = scan.length.as_int()
    step = sum(1 for op in tensor_ops(scan.block) if not isinstance(op, ViewLike | ConstantOp | YieldOp))
    return None if length is None else length * step


def unroll(scan: ScanOp) -> None:
    """Replace a scan of static length by its steps. Stacked results become concatenations of their slices."""
    length, axis = scan.length.as_int(), scan.axis
    block = scan.parent
    assert length is not None and block is not None
    carry = len(scan.init)
    carried: list[SSAValue] = list(scan.init)
    stacked = [list[SSAValue]() for _ in scan.results[carry:]]

    def add(op: Operation) -> SSAValue:
        op.location = scan.location
        block.insert_op_before(op, scan)
        return op.results[0]

    def add_slice(value: SSAValue, index: int) -> SSAValue:
        t = tensor_type(value)
        dims = (*t.dims[:axis], const(1), *t.dims[axis + 1 :])
        offsets = tuple(const(index if i == axis else 0) for i in range(t.rank))
        piece = SliceOp.create(
            operands=[value],
            properties={"offsets": ShapeAttr(offsets)},
            result_types=[TensorType.get(dims, t.element_type)],
        )
        rest = TensorType.get((*t.dims[:axis], *t.dims[axis + 1 :]), t.element_type)
        return add(ReshapeOp.create(operands=[add(piece)], result_types=[rest]))

    for index in reversed(range(length)) if scan.reverse is not None else range(length):
        slices = [add_slice(value, index) for value in scan.scanned]
        values: dict[SSAValue, SSAValue] = dict(zip(scan.block.args, (*slices, *carried, *scan.captured), strict=True))
        for op in scan.block.ops:
            if not isinstance(op, YieldOp):
                add(op.clone(values))
        yielded = [values.get(v, v) for v in scan.yielded]
        carried = yielded[:carry]
        for pieces, value, result in zip(stacked, yielded[carry:], scan.results[carry:], strict=True):
            t = tensor_type(result)
            piece = TensorType.get((*t.dims[:axis], 1, *t.dims[axis + 1 :]), t.element_type)
            pieces.append(add(ReshapeOp.create(operands=[value], result_types=[piece])))
    results: list[SSAValue] = list(carried)
    for pieces, result in zip(stacked, scan.results[carry:], strict=True):
        if not pieces:
            results.append(add(ConstantOp(0, tensor_type(result))))
            continue
        ordered = pieces[::-1] if scan.reverse is not None else pieces
        if length == 1:  # a concat outside of the block would be a user of the slice
            results.append(ordered[0])
            continue
        results.append(add(ConcatOp.create(operands=ordered, properties={"dim": scan.dim}, result_types=[result.type])))
    for result, value in zip(scan.results, results, strict=True):
        value.name_hint = value.name_hint or result.name_hint
        result.replace_all_uses_with(value)
    scan.detach()
    scan.erase()


@dataclass(frozen=True)
class UnrollScansPass(TellingPass):
    """Unroll scans of a static length that become at most `limit` ops: `unroll-scans{limit=64}`."""

    name = "unroll-scans"

    limit: int = MAX_OPS

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        return any([self.unroll_in(graph.block) for graph in module.ops if isinstance(graph, GraphOp)])

    def unroll_in(self, block: Block) -> bool:
        """Unroll the scans of a block, inner scans first; returns whether there were any to unroll."""
        changed = False
        for scan in [op for op in block.ops if isinstance(op, ScanOp)]:
            changed |= self.unroll_in(scan.block)
            count = unrolled_ops(scan)
            if count is not None and count <= self.limit:
                unroll(scan)
                changed = True
        return changed
