"""The operators of detectors in plain NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F


def pooled(x, rois, bins, scale, ratio, aligned):
    """The alignment of regions by grid samples: x [N, H, W, C]; bins of samples that all lie inside."""
    out = []
    for image, x1, y1, x2, y2 in rois:
        offset = 0.5 if aligned else 0.0
        left, top = x1 * scale - offset, y1 * scale - offset
        width, height = (x2 - x1) * scale, (y2 - y1) * scale
        if not aligned:
            width, height = width.clamp(min=1), height.clamp(min=1)
        steps = (torch.arange(bins * ratio, dtype=torch.float64) + 0.5) / (bins * ratio)
        ys, xs = top + height * steps, left + width * steps
        h, w = x.shape[1:3]
        grid = torch.stack(
            torch.broadcast_tensors((xs / (w - 1) * 2 - 1)[None, :], (ys / (h - 1) * 2 - 1)[:, None]), -1
        )
        source = x[int(image)].permute(2, 0, 1)[None]
        samples = F.grid_sample(source, grid[None], align_corners=True, padding_mode="border")
        out.append(F.avg_pool2d(samples, ratio)[0].permute(1, 2, 0))
    return torch.stack(out)


def some_boxes(*shape, seed=0):
    corner = np.random.default_rng(seed).uniform(0, 9, (*shape, 2))
    return np.concatenate([corner, corner + np.random.default_rng(seed + 1).uniform(0.5, 5, (*shape, 2))], -1)


def suppressed(boxes, scores, iou):
    """The places of the boxes [N, 4] that remain, by falling scores."""
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        low, high = np.maximum(boxes[kept, :2], boxes[i, :2]), np.minimum(boxes[kept, 2:], boxes[i, 2:])
        inside = np.prod(np.clip(high - low, 0, None), -1)
        areas = np.prod(boxes[kept, 2:] - boxes[kept, :2], -1) + np.prod(boxes[i, 2:] - boxes[i, :2])
        if not (inside / (areas - inside) > iou).any():
            kept.append(i)
    return kept
