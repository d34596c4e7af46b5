"""Operators of detectors: features of regions, and non-maximum suppression.

Boxes have corners x1, y1, x2, y2. If fewer boxes remain than a result has room for, the rest is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1

from ait_mlir.dialects.ait.detection import NmsOp, RoiAlignOp, roi_properties
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Expr, const
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import as_dim, minimum
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.cumulative import cumsum
from ait_mlir.frontend.ops.elementwise import cast, clamp, ge, le, where
from ait_mlir.frontend.ops.index import batch_gather
from ait_mlir.frontend.ops.pad import pad
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.reduce import reduce_sum
from ait_mlir.frontend.ops.sorting import sort
from ait_mlir.frontend.ops.view import dynamic_slice, expand, permute, reshape, split
from ait_mlir.frontend.tensor import Tensor

__all__ = ["batched_nms", "efficient_nms", "multi_level_roi_align", "nms", "roi_align"]


# ** features of regions **


class roi_ops_base(Operator):
    """Options of the alignments: a result has `pooled_size` x `pooled_size` bins for each region.

    `sampling_ratio`: samples along each dim of a bin; below 1, one for each element. `spatial_scale`: the size of x
    divided by that of the image in which boxes are measured. `continuous_coordinate` moves boxes by half an element.
    With `position_sensitive` each bin has its own channels.
    """

    def __init__(
        self,
        num_rois: int,
        pooled_size: int,
        sampling_ratio: int,
        spatial_scale: float,
        position_sensitive: bool,
        continuous_coordinate: bool,
    ):
        self.num_rois, self.bins = num_rois, pooled_size
        self.sampling, self.scale = sampling_ratio, spatial_scale
        self.sensitive, self.continuous = position_sensitive, continuous_coordinate

    def aligned(
        self, levels: Sequence[Tensor], rois: Tensor, scales: Sequence[float], regions: Expr, from_size: float | None
    ) -> Tensor:
        """The features of all regions; `BuildError` unless their number is `regions`."""
        x = levels[0]
        if x.rank != 4 or rois.rank != 2:
            raise self.fail("the features are [N, H, W, C] and rois [regions, 5]")
        if rois.type.dims[0] is not regions:
            raise self.fail(f"rois must have shape [{regions}, 5], found {rois.describe()}")
        channels = x.type.dims[3]
        if self.sensitive:
            known = channels.as_int()
            if known is None or known % (self.bins * self.bins):
                raise self.fail(f"{channels} channels, expected a multiple of {self.bins * self.bins} bins")
            channels = const(known // (self.bins * self.bins))
        result = TensorType.get((regions, self.bins, self.bins, channels), x.type.element_type)
        properties = roi_properties(scales, self.sampling, self.continuous, self.sensitive, from_size)
        return self.emit_one(RoiAlignOp, [*levels, rois], properties, [result])


class roi_align(roi_ops_base):
    """x [N, H, W, C], rois [num_rois, 5] with the image first; the result is [num_rois, bins, bins, C]."""

    def __call__(self, x: Tensor, rois: Tensor) -> Tensor:
        return self.finish(self.aligned([x], rois, [self.scale], const(self.num_rois), None))


class multi_level_roi_align(roi_ops_base):
    """`roi_align` on features of an image [H, W] = `im_shape` that are a 4th, 8th, 16th and 32nd of its size.

    rois are [num_rois * N, 5], measured in elements of the image. A box uses the level for its size (FPN,
    arXiv:1612.03144), the second one from 112 x 112 on. `spatial_scale` is not used, because the levels determine it.
    """

    STEPS = (4, 8, 16, 32)
    SECOND_FROM = 112.0

    def __init__(
        self,
        num_rois: int,
        pooled_size: int,
        sampling_ratio: int,
        spatial_scale: float,
        position_sensitive: bool,
        continuous_coordinate: bool,
        im_shape: Sequence[int],
    ):
        super().__init__(
            num_rois, pooled_size, sampling_ratio, spatial_scale, position_sensitive, continuous_coordinate
        )
        self.im_shape = tuple(im_shape)
        if len(self.im_shape) != 2:
            raise BuildError(f"{self.name}: im_shape is {list(im_shape)}, expected height and width")

    def __call__(self, p2: Tensor, p3: Tensor, p4: Tensor, p5: Tensor, rois: Tensor) -> Tensor:
        levels = [p2, p3, p4, p5]
        self.begin(*levels, rois)
        for step, level in zip(self.STEPS, levels, strict=True):
            for size, dim in zip(self.im_shape, level.type.dims[1:3], strict=False):
                known = dim.as_int()
                if known is not None and known not in (size // step, -(-size // step)):
                    raise self.fail(f"found {level.describe()}, expected a {step}th of the image {list(self.im_shape)}")
        regions = p2.type.dims[0] * self.num_rois
        scales = [1 / step for step in self.STEPS]
        return self.finish(self.aligned(levels, rois, scales, regions, self.SECOND_FROM))


# ** suppression **


class nms_base(Operator):
    """Base of the suppressions."""

    def kept(self, boxes: Tensor, iou: float, valid: Tensor | None = None) -> Tensor:
        """Whether each of the boxes [..., N, 4], the best first, remains."""
        operands = [boxes] if valid is None else [boxes, valid]
        result = TensorType.get(boxes.type.dims[:-1], i1)
        return self.emit_one(NmsOp, operands, {"iou": iou}, [result])

    def first(self, x: Tensor, axis: int, count: int) -> Tensor:
        """At most `count` elements along an axis."""
        ends = [None if i != axis else minimum(dim, count) for i, dim in enumerate(x.shape())]
        return dynamic_slice()(x, [None] * x.rank, ends)

    def filled(self, x: Tensor, axis: int, count: int) -> Tensor:
        """x padded with zeros at the end of an axis, up to `count` elements."""
        room = as_dim(count) - x.shape()[axis]
        after = [0, 0] * (x.rank - 1 - axis)
        return pad([*after, 0, room])(x)

    def large(self, boxes: Tensor, least: float) -> Tensor | None:
        """Whether each box has at least this width and height; None if all may remain."""
        if least <= 0:
            return None
        x1, y1, x2, y2 = split()(boxes, 1, boxes.rank - 1)
        wide, high = ge()(x2 - x1, least), ge()(y2 - y1, least)
        return reshape()(where()(wide, high, 0), boxes.shape()[:-1])


class batched_nms(nms_base):
    """int64 [N]: 1 for each of the boxes [N, 4], the best first, that remains, 0 for the others.

    A box that remains removes each later one that overlaps it by more than `iou_threshold`. At most `keep_n` remain; -1
    is no limit.
    """

    def __init__(self, iou_threshold: float = 0.5, keep_n: int = -1):
        self.iou, self.keep_n = iou_threshold, keep_n

    def __call__(self, x: Tensor) -> Tensor:
        if x.rank != 2:
            raise self.fail(f"boxes are [N, 4], found {x.describe()}")
        keep = cast()(self.kept(x, self.iou), "int64")
        if self.keep_n >= 0:
            keep = where()(le()(cumsum(0)(keep), self.keep_n), keep, 0)
        return self.finish(keep)


class nms(nms_base):
    """The boxes [N, nmsMaxOut, 4] of x [N, R, 4] that remain, by descending scores [N, R].

    Only the `preNmsTop` best boxes are considered, and of these only boxes of width and height at least `minBoxSize`. A
    box that remains removes boxes with lower scores that overlap it by more than `iouThreshold`.
    """

    def __init__(self, preNmsTop: int = 2000, nmsMaxOut: int = 200, iouThreshold: float = 0.5, minBoxSize: float = 0):
        self.top, self.out, self.iou, self.least = preNmsTop, nmsMaxOut, iouThreshold, minBoxSize

    def __call__(self, x: Tensor, scores: Tensor) -> Tensor:
        if x.rank != 3 or scores.rank != 2:
            raise self.fail("boxes are [N, R, 4] and scores [N, R]")
        _, places = sort(1, descending=True)(scores)
        boxes = batch_gather()(x, self.first(places, 1, self.top))
        keep, order = sort(1, descending=True)(self.kept(boxes, self.iou, self.large(boxes, self.least)))
        keep, order = (self.first(t, 1, self.out) for t in (keep, order))
        found = where()(reshape()(keep, [*keep.shape(), 1]), batch_gather()(boxes, order), 0.0)
        return self.finish(self.filled(found, 1, self.out))


class efficient_nms(nms):
    """The boxes of all classes that remain, by descending scores: their number [N, 1], the boxes [N, nmsMaxOut, 4],
    their scores and their classes [N, nmsMaxOut]; number and classes are int64.

    Scores are [N, R, classes], boxes [N, R, classes, 4], or [N, R, 1, 4] if all classes share them. A box removes only
    boxes of its class; `preNmsTop` applies to each class. `BuildError` if boxes and scores disagree.
    """

    def __call__(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # type: ignore[override]
        if boxes.rank != 4 or scores.rank != 3:
            raise self.fail("boxes are [N, R, classes, 4] and scores [N, R, classes]")
        images, rows, shared, _ = boxes.shape()
        if shared.expr.as_int() == 1:
            boxes = expand()(boxes, [images, rows, scores.shape()[2], 4])
        for given, wanted in zip(boxes.shape(), [*scores.shape(), 4], strict=True):
            found, expected = given.expr.as_int(), as_dim(wanted).expr.as_int()
            if found != expected and None not in (found, expected):
                raise self.fail(
                    "boxes are [N, R, classes, 4], or [N, R, 1, 4] for all classes, with N, R and classes of the scores"
                )
        values, places = sort(2, descending=True)(permute()(scores, [0, 2, 1]))
        values, places = (self.first(t, 2, self.top) for t in (values, places))
        found = batch_gather()(permute()(boxes, [0, 2, 1, 3]), places)
        keep = self.kept(found, self.iou, self.large(found, self.least))
        batch, classes, count = values.shape()
        numbers = expand()(reshape()(arange()(classes), [1, classes, 1]), [batch, classes, count])
        flat = [batch, classes * count]
        keep, values, numbers = (reshape()(t, flat) for t in (keep, values, numbers))
        _, order = sort(1, descending=True)(where()(keep, values, float("-inf")))
        order = self.first(order, 1, self.out)
        there = batch_gather()(keep, order)
        results = [batch_gather()(t, order) for t in (reshape()(found, [*flat, 4]), values, numbers)]
        masks = [reshape()(there, [*there.shape(), 1]), there, there]
        zeros = [0.0, 0.0, 0]
        self.outputs = [
            clamp()(reduce_sum(1, keepdim=True)(cast()(keep, "int64")), 0, self.out),
            *(
                self.filled(where()(mask, t, zero), 1, self.out)
                for mask, t, zero in zip(masks, results, zeros, strict=True)
            ),
        ]
        total, kept_boxes, kept_scores, kept_classes = self.outputs
        return total, kept_boxes, kept_scores, kept_classes
