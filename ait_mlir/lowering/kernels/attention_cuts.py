"""Attention as two products with a softmax between them."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Block, Operation, Region

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.elementwise import MulOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.kernels.contraction import keeps_f32
from ait_mlir.lowering.kernels.cuts import Cut

MOST_SCORE_BYTES = 1 << 30
"""The most memory for the scores."""


class ProductsCut(Cut[AttentionOp]):
    """Attention without masks, of f32 that must not be rounded: q k^T with scaled q, a softmax, a product with v.

    The tensor cores cannot compute it, and libraries multiply matrices of f32 faster than our kernel attends, so that
    scores in memory pay.
    """

    name = "products"
    ops = (AttentionOp,)

    def places(self, op: AttentionOp, target: Target) -> range:
        exact = isinstance(tensor_type(op.q).element_type, Float32Type) and keeps_f32(op, target)
        return range(1 if target.is_gpu and exact and _is_plain(op) else 0)

    def parts(self, op: AttentionOp, place: int) -> tuple[Operation, ...] | None:
        scale = known_number(op.scale)
        if place != 0 or scale is None or not _is_plain(op):
            return None
        q, kind = tensor_type(op.q), tensor_type(op.q).element_type
        block = Block(arg_types=[kind])
        factor = ConstantOp(scale, kind)
        scaled = MulOp(block.args[0], factor.output)
        block.add_ops([factor, scaled, YieldOp(scaled.results[0])])
        rows = FusedElementwiseOp([op.q], [q], Region(block))
        scores = BmmOp("rcr", rows.results[0], op.k, (), None, TensorType.get((*q.dims[:3], op.length), kind))
        weights = SoftmaxOp(scores.output, 3)
        return rows, scores, weights, BmmOp("rrr", weights.output, op.v, (), None, tensor_type(op.output))


def _is_plain(op: AttentionOp) -> bool:
    """Whether each row sees all columns of one piece, heads are not shared, and the scores fit in memory."""
    flags = (op.causal, op.window, op.mask, op.then, op.no_softmax, op.log_sums)
    (batch, heads, rows, _), kv = tensor_type(op.q).dims, tensor_type(op.k)
    scope = scope_of(op)
    size = TensorType.get((batch, heads, rows, op.length), kv.element_type).byte_size()
    return (
        all(flag is None for flag in flags)
        and not op.changes_scores
        and not op.quantises
        and known_number(op.scale) is not None
        and scope.equal(heads, kv.dims[1])
        and scope.positive(op.length)  # a row that sees no column is 0, the softmax of none is nothing
        and scope.bounds(size)[1] <= MOST_SCORE_BYTES
    )


CUTS = (ProductsCut(),)
