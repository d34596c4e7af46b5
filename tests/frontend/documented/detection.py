"""Operators of detectors, after the definitions in their papers."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tests.frontend.documented.row import Row

BOXES = [[0, 0, 4, 4], [1, 0, 4, 4], [5, 5, 9, 8], [0, 1, 4, 5], [5, 5, 9, 9], [20, 20, 21, 21]]
SCORES = [0.9, 0.8, 0.3, 0.85, 0.7, 0.1]


def overlap(a: torch.Tensor, b: torch.Tensor) -> float:
    """The area that two boxes share over the area of both together."""
    sides = torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])
    shared = float(sides.clamp(min=0).prod())
    return shared / (float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod()) - shared)


def remaining(boxes: torch.Tensor, threshold: float) -> list[int]:
    """Whether each box, the best first, is not removed by a better one that remains."""
    kept: list[int] = []
    for i, box in enumerate(boxes):
        if all(overlap(boxes[j], box) <= threshold for j in kept):
            kept.append(i)
    return kept


def best(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> list[int]:
    """The boxes that remain, by descending scores."""
    order = scores.argsort(descending=True, stable=True)
    return [int(order[i]) for i in remaining(boxes[order], threshold)]


def batched_nms(boxes: torch.Tensor) -> torch.Tensor:
    keep = torch.zeros(len(boxes), dtype=torch.int64)
    keep[remaining(boxes, 0.5)] = 1
    return keep


def nms(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    found = torch.zeros(len(boxes), 4, 4, dtype=boxes.dtype)
    for i, (own, values) in enumerate(zip(boxes, scores, strict=True)):
        kept = best(own, values, 0.4)[:4]
        found[i, : len(kept)] = own[kept]
    return found


def efficient_nms(boxes: torch.Tensor, scores: torch.Tensor) -> list[torch.Tensor]:
    """One image: the boxes of each class on their own, then all by their scores."""
    found = [
        (float(-scores[0, i, c]), boxes[0, i, c], c)
        for c in range(scores.shape[2])
        for i in best(boxes[0, :, c], scores[0, :, c], 0.5)
    ]
    found = sorted(found, key=lambda item: item[0])[:8]
    result = torch.zeros(1, 8, 4, dtype=boxes.dtype), torch.zeros(1, 8, dtype=boxes.dtype), torch.zeros(1, 8).long()
    for i, (score, box, c) in enumerate(found):
        result[0][0, i], result[1][0, i], result[2][0, i] = box, -score, c
    return [torch.tensor([[len(found)]]), *result]


def pooled(x: torch.Tensor, box: torch.Tensor, scale: float, bins: int, samples: int) -> torch.Tensor:
    """The means of bilinear samples in `bins` x `bins` parts of a box of x [H, W, C], whose pixels have centres at 0.5."""
    x1, y1, x2, y2 = (float(v) * scale - 0.5 for v in box)
    result = torch.zeros(bins, bins, x.shape[2], dtype=x.dtype)
    for i in range(bins):
        for j in range(bins):
            for a in range(samples):
                for b in range(samples):
                    y = y1 + (y2 - y1) * (i + (a + 0.5) / samples) / bins
                    z = x1 + (x2 - x1) * (j + (b + 0.5) / samples) / bins
                    result[i, j] += bilinear(x, y, z) / samples**2
    return result


def bilinear(x: torch.Tensor, y: float, z: float) -> torch.Tensor:
    """x at a point; 0 more than one element outside, else the value at the edge."""
    height, width = x.shape[:2]
    if not (-1 <= y <= height and -1 <= z <= width):
        return torch.zeros_like(x[0, 0])
    y, z = min(max(y, 0.0), height - 1.0), min(max(z, 0.0), width - 1.0)
    top, left = int(y), int(z)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    fy, fz = y - top, z - left
    upper = x[top, left] * (1 - fz) + x[top, right] * fz
    lower = x[bottom, left] * (1 - fz) + x[bottom, right] * fz
    return upper * (1 - fy) + lower * fy


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
        lambda x, r: torch.stack([pooled(x[int(roi[0])], roi[1:], 0.5, 2, 2) for roi in r]),
        {1: [[a, 2 * b, 2 * c, 2 * d, 2 * e] for a, b, c, d, e in ROIS]},
    )
    sizes = [f"1 x {256 // step} x {256 // step} x 2" for step in (4, 8, 16, 32)]
    yield Row(
        "multi_level_roi_align",
        [*sizes, "3 x 5"],
        lambda op, *x: op(3, 2, 2, 1.0, False, True, im_shape=(256, 256))(*x),
        lambda *x: torch.stack([pooled(x[level_of(r[1:])][0], r[1:], 1 / (4 << level_of(r[1:])), 2, 2) for r in x[4]]),
        {4: IMAGE_ROIS},
    )


ROWS = [*suppressions(), *alignments()]
