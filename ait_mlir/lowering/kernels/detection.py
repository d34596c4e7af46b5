"""Features of regions, and non-maximum suppression."""

from __future__ import annotations

from xdsl.dialects.builtin import f64, i64

from ait_mlir.dialects.ait.detection import NmsOp, RoiAlignOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, ceildiv, product
from ait_mlir.lowering.cpp import element_type, literal
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Target
from ait_mlir.lowering.kernels.loops import braces

GROUP = 64
"""Boxes in a word of the bit matrix, as in `gpu/nms.cuh`."""
MOST_BOXES = 1 << 18
"""The most boxes on a GPU. It keeps a bit for each pair of boxes, and in shared memory a bit for each box."""


class RoiAlignKernel(Kernel[RoiAlignOp]):
    """`ait.roi_align`, any strides: each thread computes some channels of a bin."""

    name = "roi_align"
    ops = (RoiAlignOp,)

    def emit(self, launch: Launch[RoiAlignOp]) -> Emission:
        op, (*levels, rois), (y,), dims = launch.op, launch.ins, launch.outs, launch.dims
        t, r = (element_type(a.type.element_type) for a in (levels[0], rois))
        texts = [
            f"{{{a.name}, {braces(a.strides, dims)}, {launch.cpp(*a.type.dims[1:3])}, {literal(scale, f64)}}}"
            for a, scale in zip(levels, op.factors(), strict=True)
        ]
        flags = ("true" if flag is not None else "false" for flag in (op.aligned, op.position_sensitive))
        fields = (
            launch.cpp(rois.type.dims[0], levels[0].type.dims[0]),
            braces(y.type.dims[1:3], dims),
            launch.cpp(y.type.dims[3]),
            f"{{{', '.join(texts)}}}",
            rois.name,
            braces(rois.strides, dims),
            str(0 if op.sampling is None else op.sampling.value.data),
            *flags,
            literal(0.0 if op.second_from is None else op.second_from.value.data, f64),
        )
        shape = f"ait::RoiShape<{t}, {r}, {len(levels)}>{{{', '.join(fields)}}}"
        return launch.call("roi_align", f"roi_align(ctx, {shape}, {y.name}, {braces(y.strides, dims)})")


class NmsKernel(Kernel[NmsOp]):
    """`ait.nms`: box by box on a CPU; a GPU first compares all pairs."""

    name = "nms"
    ops = (NmsOp,)
    row_major = True

    def matches(self, op: NmsOp, target: Target) -> bool:
        return not target.is_gpu or scope_of(op).bounds(tensor_type(op.boxes).dims[-2])[1] <= MOST_BOXES

    def between(self, op: NmsOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        batch, count = _extents(op)
        return (TensorType.get([batch, count, ceildiv(count, GROUP)], i64),) if target.is_gpu else ()

    def emit(self, launch: Launch[NmsOp]) -> Emission | tuple[Emission, ...]:
        op, (boxes, *valid), (keep,) = launch.op, launch.ins, launch.outs
        sizes, iou = launch.cpp(*_extents(op)), literal(op.iou.value.data, f64)
        mask = valid[0].name if valid else "nullptr"
        if not launch.target.is_gpu:
            return launch.call("nms", f"nms(ctx, {sizes}, {boxes.name}, {mask}, {iou}, {keep.name})")
        words = launch.between[0].name
        return (
            launch.call("nms", f"nms_overlaps(ctx, {sizes}, {boxes.name}, {iou}, {words})"),
            launch.call("nms", f"nms_pick(ctx, {sizes}, {words}, {mask}, {keep.name})"),
        )


def _extents(op: NmsOp) -> tuple[Expr, Expr]:
    """The number of batches, and of boxes in each."""
    *outer, count, _ = tensor_type(op.boxes).dims
    return product(outer), count


KERNELS = (RoiAlignKernel(), NmsKernel())
