"""Layers that propose regions (arXiv:1506.01497), on one level of features or on several (arXiv:1612.03144).

Anchors are boxes around each place of the features; the model predicts how to move and scale each anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.tensor import Tensor

__all__ = ["FPNProposal", "Proposal"]

Anchors = NDArray[Any]


def generate_anchors(ratios: Sequence[float] = (0.5, 1, 2), scales: Sequence[float] = (8, 16, 32)) -> Anchors:
    """float64 [scales * ratios, 4]: boxes around the origin, `ratio` times as high as wide, of area `scale`^2."""
    sizes = np.array([(scale / np.sqrt(ratio), scale * np.sqrt(ratio)) for scale in scales for ratio in ratios])
    return np.hstack([-sizes / 2, sizes / 2])


def generate_shifted_anchors(
    im_h: int,
    im_w: int,
    feat_stride: int,
    scales: Sequence[float],
    ratios: Sequence[float],
    batch_size: int,
    dtype: str,
) -> Anchors:
    """[images * rows * columns * anchors, 4]: the anchors at every place of features of this stride, for each image."""
    rows, columns = np.arange(-(-im_h // feat_stride)), np.arange(-(-im_w // feat_stride))
    x, y = (grid.ravel() * feat_stride for grid in np.meshgrid(columns, rows))
    places = np.stack([x, y, x, y], axis=1)
    boxes = places[:, None] + generate_anchors(ratios, scales)[None]
    return np.tile(boxes.reshape(-1, 4), (batch_size, 1)).astype(dtype)


def generate_fpn_anchors(
    im_h: int,
    im_w: int,
    feat_strides: Sequence[int],
    scales: Sequence[Sequence[float]],
    ratios: Sequence[float],
    batch_size: int,
    dtype: str,
) -> list[Anchors]:
    """The anchors of each level, as `generate_shifted_anchors` makes them."""
    return [
        generate_shifted_anchors(im_h, im_w, stride, own, ratios, batch_size, dtype)
        for stride, own in zip(feat_strides, scales, strict=True)
    ]


class Proposal(Module):
    """Boxes [images * places * anchors, 4] from a model's predictions; with `nms_on` only the best boxes.

    The call takes the predictions, any shape with 4 numbers (x, y, log width, log height) for each anchor, and with
    `nms_on` the scores, one for each anchor. Corners are limited to the image with `clip_box`. With `nms_on` it returns
    the regions [batch_size * rpn_post_nms_top_n, 5] for `RoiAlign`, the image first, and their boxes [..., 4]. The
    anchors are a constant, "anchors" or "anchors_LEVEL", whose data are `_anchors`.
    """

    def __init__(
        self,
        im_shape: Sequence[int],
        feat_stride: Any = 16,
        scales: Any = (32, 64, 128, 256, 512),
        ratios: Sequence[float] = (0.5, 1, 2),
        clip_box: bool = True,
        nms_on: bool = True,
        rpn_pre_nms_top_n: int = 6000,
        rpn_post_nms_top_n: int = 300,
        iou_threshold: float = 0.3,
        rpn_min_size: float = 0,
        level: int = -1,
        f_proc: Callable[..., Any] | None = None,
        batch_size: int = 1,
        dtype: str = "float16",
    ):
        self.height, self.width = im_shape
        self.clip_box, self.nms_on = clip_box, nms_on
        self.count, self.level, self.batch_size, self.dtype = rpn_post_nms_top_n, level, batch_size, dtype
        self.nms = ops.nms(rpn_pre_nms_top_n, rpn_post_nms_top_n, iou_threshold, rpn_min_size)
        make = generate_shifted_anchors if f_proc is None else f_proc
        self._anchors = make(self.height, self.width, feat_stride, scales, ratios, batch_size, dtype)

    def forward(self, deltas: Tensor, scores: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        name = "anchors" if self.level == -1 else f"anchors_{self.level}"
        boxes = self.box_transform(ops.reshape()(deltas, [-1, 4]), self.anchors(name, self._anchors))
        return self.best(boxes, scores) if self.nms_on else boxes

    def anchors(self, name: str, data: Anchors) -> Tensor:
        """A constant called `name` with the shape and dtype of the anchors `data`."""
        return Tensor(shape=list(data.shape), dtype=self.dtype, name=name)

    def best(self, boxes: Tensor, scores: Tensor | None) -> tuple[Tensor, Tensor]:
        """The regions and the boxes that remain for each image after non-maximum suppression."""
        if scores is None:
            raise BuildError(f"{type(self).__name__}: nms_on needs the scores as its second argument")
        images, count = self.batch_size, self.count
        given = ops.reshape()(boxes, [images, -1, 4]), ops.reshape()(scores, [images, -1])
        found = self.nms(*given)
        numbers = ops.reshape()(ops.cast()(ops.arange()(images), self.dtype), [images, 1, 1])
        regions = ops.concatenate()([ops.expand()(numbers, [images, count, 1]), found], dim=2)
        return ops.reshape()(regions, [-1, 5]), ops.reshape()(found, [-1, 4])

    def box_transform(self, bbox_deltas: Tensor, anchors: Tensor) -> Tensor:
        """Anchors [R, 4], moved by deltas [R, 4] in units of their size, and scaled by the exponential."""
        left, top, right, bottom = ops.split()(anchors, 1, dim=1)
        x, y, width, height = ops.split()(bbox_deltas, 1, dim=1)
        x1, x2 = self._side(left, right, x, width, self.width)
        y1, y2 = self._side(top, bottom, y, height, self.height)
        return ops.concatenate()([x1, y1, x2, y2], dim=1)

    def _side(self, first: Tensor, last: Tensor, shift: Tensor, growth: Tensor, limit: int) -> tuple[Tensor, Tensor]:
        """The two ends of boxes along one axis."""
        size = last - first
        centre = shift * size + (first + size * 0.5)
        half = ops.exp(growth) * size * 0.5
        low, high = centre - half, centre + half
        return (ops.clamp()(low, 0, limit), ops.clamp()(high, 0, limit)) if self.clip_box else (low, high)


class FPNProposal(Proposal):
    """Boxes from several levels of features: the first argument of the call is a list with the predictions of each.

    With `nms_on` it returns the regions [rpn_post_nms_top_n, 5] and the boxes [1, rpn_post_nms_top_n, 4] of one image,
    else a list with the boxes of each level. The anchors are the constants "anchors_2", "anchors_3" and so on, whose
    data are `_anchors`.
    """

    def __init__(
        self,
        im_shape: Sequence[int],
        feat_strides: Sequence[int] = (4, 8, 16, 32, 64),
        scales: Sequence[Sequence[float]] = ((32,), (64,), (128,), (256,), (512,)),
        ratios: Sequence[float] = (0.5, 1, 2),
        clip_box: bool = True,
        nms_on: bool = True,
        rpn_pre_nms_top_n: int = 6000,
        rpn_post_nms_top_n: int = 300,
        iou_threshold: float = 0.3,
        rpn_min_size: float = 0,
        level: int = -1,
        batch_size: int = 1,
        dtype: str = "float16",
    ):
        if nms_on and batch_size != 1:
            raise BuildError(f"FPNProposal: nms_on is for one image, not {batch_size}")
        super().__init__(
            im_shape,
            feat_strides,
            scales,
            ratios,
            clip_box,
            nms_on,
            rpn_pre_nms_top_n,
            rpn_post_nms_top_n,
            iou_threshold,
            rpn_min_size,
            level,
            generate_fpn_anchors,
            batch_size,
            dtype,
        )

    def forward(self, deltas: Sequence[Tensor], scores: Tensor | None = None) -> Any:  # type: ignore[override]
        if len(deltas) != len(self._anchors):
            raise BuildError(f"FPNProposal: {len(deltas)} predictions for {len(self._anchors)} levels")
        anchors = [self.anchors(f"anchors_{i}", data) for i, data in enumerate(self._anchors, 2)]
        given = [ops.reshape()(level, [-1, 4]) for level in deltas]
        boxes = self.box_transform(ops.concatenate()(given, dim=0), ops.concatenate()(anchors, dim=0))
        if not self.nms_on:
            return list(ops.split()(boxes, [len(data) for data in self._anchors], dim=0))
        regions, found = self.best(boxes, scores)
        return regions, ops.reshape()(found, [1, -1, 4])
