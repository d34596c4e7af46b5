"""Operators of detectors, after the definitions in their papers."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tests.frontend.boxes import pooled, suppressed
from tests.frontend.documented.row import Row

BOXES = [[0, 0, 4, 4], [1, 0, 4, 4], [5, 5, 9, 8], [0, 1, 4, 5], [5, 5, 9, 9], [20, 20, 21, 21]]
SCORES = [0.9, 0.8, 0.3, 0.85, 0.7, 0.1]


def remaining(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> list[int]:
    """The boxes that no better one removes, by falling scores."""
    return suppressed(boxes.numpy(), scores.numpy(), threshold)


def batched_nms(boxes: torch.Tensor) -> torch.Tensor:
    keep = torch.zeros(len(boxes), dtype=torch.int64)
    keep[remaining(boxes, -torch.arange(len(boxes)), 0.5)] = 1
    return keep


def nms(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    found = torch.zeros(len(boxes), 4, 4, dtype=boxes.dtype)
    for i, (own, values) in enumerate(zip(boxes, scores, strict=True)):
        kept = remaining(own, values, 0.4)[:4]
        found[i, : len(kept)] = own[kept]
    return found


def efficient_nms(boxes: torch.Tensor, scores: torch.Tensor) -> list[torch.Tensor]:
    """One image: the boxes of each class on their own, then all by their scores."""
    found = [
        (float(-scores[0, i, c]), boxes[0, i, c], c)
        for c in range(scores.shape[2])
        for i in remaining(boxes[0, :, c], scores[0, :, c], 0.5)
    ]
    found = sorted(found, key=lambda item: item[0])[:8]
    result = torch.zeros(1, 8, 4, dtype=boxes.dtype), torch.zeros(1, 8, dtype=boxes.dtype), torch.zeros(1, 8).long()
    for i, (score, box, c) in enumerate(found):
        result[0][0, i], result[1][0, i], result[2][0, i] = box, -score, c
    return [torch.tensor([[len(found)]]), *result]


def level_of(box: torch.Tensor) -> int:
    """The level of four for a box of this size (arXiv:1612.03144): the third for 224 x 224."""
    size = float((box[2] - box[0]) * (box[3] - box[1])) ** 0.5
    return min(max(int(torch.tensor(size / 224 + 1e-6).log2().floor()) + 4, 2), 5) - 2


ROIS = [[0, 1, 1, 5, 6], [1, 0, 2, 7, 4], [1, 3, 3, 3.5, 3.5]]
IMAGE_ROIS = [[0, 4, 4, 100, 90], [0, 0, 0, 250, 130], [0, 8, 0, 256, 256]]


def suppressions() -> Iterator[Row]:
    yield Row("batched_nms", ["6 x 4"], lambda op, x: op(iou_threshold=0.5, keep_n=-1)(x), batched_nms, {0: BOXES})
    yield Row(
        "nms",
        ["2 x 6 x 4", "2 x 6"],
        lambda op, x, s: op(preNmsTop=6, nmsMaxOut=4, iouThreshold=0.4, minBoxSize=0)(x, s),
        nms,
        {0: [BOXES, BOXES[::-1]], 1: [SCORES, SCORES]},
    )
    yield Row(
        "efficient_nms",
        ["1 x 6 x 2 x 4", "1 x 6 x 2"],
        lambda op, x, s: op(preNmsTop=6, nmsMaxOut=8, iouThreshold=0.5, minBoxSize=0)(x, s),
        efficient_nms,
        {0: [[[box, [box[0], box[1], box[2] + 1, box[3] + 2]] for box in BOXES]],
         1: [[[s, s * s + 0.01] for s in SCORES]]},
    )  # fmt: skip


def alignments() -> Iterator[Row]:
    yield Row(
        "roi_align",
        ["2 x 8 x 9 x 4", "3 x 5"],
        lambda op, x, r: op(3, 2, 2, 0.5, position_sensitive=False, continuous_coordinate=True)(x, r),
        lambda x, r: pooled(x, r, 2, 0.5, 2, True),
        {1: [[a, 2 * b, 2 * c, 2 * d, 2 * e] for a, b, c, d, e in ROIS]},
    )
    sizes = [f"1 x {256 // step} x {256 // step} x 2" for step in (4, 8, 16, 32)]
    yield Row(
        "multi_level_roi_align",
        [*sizes, "3 x 5"],
        lambda op, *x: op(3, 2, 2, 1.0, False, True, im_shape=(256, 256))(*x),
        lambda *x: torch.cat(
            [pooled(x[n], r[None], 2, 1 / (4 << n), 2, True) for r in x[4] for n in [level_of(r[1:])]]
        ),
        {4: IMAGE_ROIS},
    )


ROWS = [*suppressions(), *alignments()]
