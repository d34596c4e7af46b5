"""Composing operations that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import int_list_attr
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, SliceOp
from ait_mlir.dims import Expr
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.table import NATIVES


def permute(r: Rewriter, value: SSAValue, order: Sequence[int]) -> Operation:
    """A new permute before the root."""
    t = tensor_type(value)
    result = TensorType.get([t.dims[i] for i in order], t.element_type)
    return r.create(PermuteOp, [value], [result], {"permutation": int_list_attr(order)})


def reshape(r: Rewriter, value: SSAValue, dims: Sequence[Expr | int]) -> Operation:
    """A new reshape before the root."""
    return r.create(ReshapeOp, [value], [TensorType.get(dims, tensor_type(value).element_type)])


@NATIVES
def compose_permutes(r: Rewriter, inner: PermuteOp, outer: PermuteOp) -> Operation:
    """One permute for a permute of a permute."""
    first, second = inner.order(), outer.order()
    return permute(r, inner.operands[0], [first[i] for i in second])


@NATIVES
def compose_slices(r: Rewriter, inner: SliceOp, outer: SliceOp) -> Operation:
    """One slice for a slice of a slice: the offsets add up."""
    offsets = [a + b for a, b in zip(inner.offsets.data, outer.offsets.data, strict=True)]
    return r.create(SliceOp, [inner.operands[0]], [outer.results[0].type], {"offsets": ShapeAttr(tuple(offsets))})


@NATIVES
def replace_by_operands(r: Rewriter, root: Operation, source: Operation) -> None:
    """Let the operands of `source` stand for the results of `root`, in order."""
    r.replace(root, list(source.operands))


@NATIVES
def fold_transpose(r: Rewriter, permutation: PermuteOp, root: ContractionOp) -> Operation:
    """A contraction that reads its operand, transposed in the last two dims, in the other layout.

    The permutation's last two dims are exchanged; what is left of it disappears where it is the identity.
    """
    order = list(permutation.order())
    order[-2:] = [order[-1], order[-2]]
    source = permutation.results[0]
    layout = list(root.layout.data)
    position = 0 if root.operands[0] is source else 1
    layout[position] = "r" if layout[position] == "c" else "c"
    operands = list(root.operands)
    operands[position] = permute(r, permutation.operands[0], order).results[0]
    attributes = root.properties | root.attributes | {"layout": StringAttr("".join(layout))}
    return r.create(type(root), operands, [root.output.type], attributes, [root.detach_region(root.epilogue)])
