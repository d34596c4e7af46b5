"""Elements of depthwise convolutions with small windows, of images whose channels come first in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.elementwise import ElementwiseOp, MulOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, to_last
from ait_mlir.dims import Expr, const
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements
from ait_mlir.lowering.kernels.conv import is_depthwise

MOST_TAPS = 16
"""The largest window: each result reads its elements by itself."""


def reads_planes(op: ConvOp) -> bool:
    """Whether a depthwise convolution with a small window reads a channels-first image, perhaps behind elementwise ops
    that nothing else reads. Its own kernels need the channels last in memory."""
    if not is_depthwise(op) or op.is_transposed() or len(op.results) > 1 or math.prod(op.kernel()) > MOST_TAPS:
        return False
    image: SSAValue = op.x
    while isinstance(before := image.owner, ElementwiseOp | FusedElementwiseOp):
        same = [v for v in before.operands if tensor_type(v).dims == tensor_type(image).dims]
        if len(same) != 1 or image.get_user_of_unique_use() is None:
            return False
        (image,) = same
    turn = image.owner
    return isinstance(turn, PermuteOp) and list(turn.order()) == to_last(len(turn.order()))


@elements_of(ConvOp, when=reads_planes)
def _(op: ConvOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    batch, *places, channel = index
    at = [i for i in places if isinstance(i, Expr)]
    if len(at) != len(places):
        raise NoElements("a place that is a value")
    starts = [i * step - pad for i, step, pad in zip(at, op.strides(), op.pads()[: op.spatial], strict=True)]

    def read(taps: Sequence[Expr]) -> SSAValue:
        inner = [start + tap * step for start, tap, step in zip(starts, taps, op.dilations(), strict=True)]
        factor = w.element(op.weight, [channel, *taps, const(0)])
        return w.op(MulOp, w.element_or(op.x, [batch, *inner, channel], 0), factor)

    total = partial(w.fold, "add", [const(n) for n in op.kernel()], read)
    if not op.epilogue.blocks:
        return total()
    beside = [partial(w.element, v, broadcast(v, index)) for v in op.epilogue_operands]
    return w.inline(op.epilogue.block, [total, *beside], position)
