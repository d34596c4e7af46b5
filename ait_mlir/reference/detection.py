"""Reference semantics of the ops on boxes, one region and one box at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from ait_mlir.dialects.ait.detection import NmsOp, RoiAlignOp
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, reference

MOST_SAMPLES = 4096


def sample(x: Array, y: float, column: float) -> Array:
    """The channels of x [H, W, C] interpolated at fractional coordinates; 0 outside of x."""
    height, width, channels = (int(n) for n in x.shape)
    if not -1 <= y <= height or not -1 <= column <= width:
        return np.zeros(channels, np.float64)
    rows, columns = ((max(at, 0.0), size) for at, size in ((y, height), (column, width)))
    (top, bottom, down), (left, right, across) = (_neighbours(*pair) for pair in (rows, columns))
    upper = x[top, left] * (1 - across) + x[top, right] * across
    lower = x[bottom, left] * (1 - across) + x[bottom, right] * across
    return cast(Array, upper * (1 - down) + lower * down)


def _neighbours(at: float, size: int) -> tuple[int, int, float]:
    low = int(at)
    return (size - 1, size - 1, 0.0) if low >= size - 1 else (low, low + 1, at - low)


def roi_align(op: RoiAlignOp, levels: Sequence[Array], roi: Array, bins: tuple[int, int]) -> Array:
    """The bins [bins, bins, C] of one region."""
    image, x1, y1, x2, y2 = roi
    if not 0 <= image < len(levels[0]):
        raise EvaluationError(f"ait.roi_align: image {image} is outside of the batch, which has {len(levels[0])}")
    number = 0
    if op.second_from is not None:
        size = op.second_from.value.data
        area = (x2 - x1) * (y2 - y1)
        number = sum(area >= (size * 2**i) ** 2 for i in range(len(levels) - 1))
    x, scale = levels[number][int(image)], op.factors()[number]
    offset = 0.5 if op.aligned is not None else 0.0
    top, left = y1 * scale - offset, x1 * scale - offset
    height, width = y2 * scale - offset - top, x2 * scale - offset - left
    if op.aligned is None:
        height, width = max(height, 1.0), max(width, 1.0)
    steps = height / bins[0], width / bins[1]
    if op.sampling is not None:
        counts = (op.sampling.value.data,) * 2
    else:
        counts = tuple(min(max(math.ceil(step), 0), MOST_SAMPLES) for step in steps)
    result = np.zeros((*bins, x.shape[-1]))
    for i in range(bins[0]):
        for j in range(bins[1]):
            for a in range(counts[0]):
                for b in range(counts[1]):
                    at = top + steps[0] * (i + (a + 0.5) / counts[0]), left + steps[1] * (j + (b + 0.5) / counts[1])
                    result[i, j] += sample(x, *at)
    return result / max(counts[0] * counts[1], 1)


@reference(RoiAlignOp)
def _(align: RoiAlignOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    *levels, rois = arrays
    shape = ev.shape(align.results[0].type)
    bins = (shape[1], shape[2])
    result = np.zeros(shape)
    for n, roi in enumerate(rois):
        found = roi_align(align, levels, roi, bins)
        if align.position_sensitive is None:
            result[n] = found
            continue
        for i in range(bins[0]):
            for j in range(bins[1]):
                result[n, i, j] = found[i, j, i * bins[1] + j :: bins[0] * bins[1]]
    return (result,)


def overlap(a: Array, b: Array) -> Array:
    """Intersection over union of a box [4] with boxes [N, 4]."""
    low, high = np.maximum(a[:2], b[:, :2]), np.minimum(a[2:], b[:, 2:])
    inside = np.prod(np.maximum(high - low, 0), axis=1)
    area = (a[2] - a[0]) * (a[3] - a[1])
    return inside / (area + (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) - inside)


@reference(NmsOp)
def _(op: NmsOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    boxes, iou = arrays[0], op.iou.value.data
    keep = np.ones(boxes.shape[:-1], np.bool_) if len(arrays) == 1 else arrays[1].copy()
    for index in np.ndindex(boxes.shape[:-2]):
        for i in range(boxes.shape[-2]):
            if keep[index][i]:
                keep[index][i + 1 :] &= ~(overlap(boxes[index][i], boxes[index][i + 1 :]) > iou)
    return (keep,)
