"""Operators of detectors in the builder, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ait_mlir.frontend import BuildError, Tensor, ops
from tests.frontend.boxes import pooled, some_boxes, suppressed
from tests.frontend.support import BATCH, data, evaluate, tensor

REGIONS = torch.tensor([[0, 2, 3, 12, 10], [2, 4.5, 1, 9, 15.5], [1, 6, 6, 7, 7.25], [0, 1, 1, 16, 16]]).double()


def test_roi_align():
    x, rois = tensor("x", "batch", 9, 9, 6), Tensor(shape=[4, 5], dtype="float64", name="rois", is_input=True)
    for aligned in (False, True):
        operator = ops.roi_align(4, 3, 2, 0.5, False, aligned)
        (got,) = evaluate(operator(x, rois), {"x": data(x), "rois": REGIONS.numpy()}, batch=BATCH)
        want = pooled(torch.from_numpy(data(x)), REGIONS, 3, 0.5, 2, aligned)
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-12)


def test_roi_align_with_channels_of_bins():
    x, rois = tensor("x", "batch", 9, 9, 8), Tensor(shape=[4, 5], dtype="float64", name="rois", is_input=True)
    (got,) = evaluate(
        ops.roi_align(4, 2, 2, 0.5, True, True)(x, rois), {"x": data(x), "rois": REGIONS.numpy()}, batch=BATCH
    )
    whole = pooled(torch.from_numpy(data(x)), REGIONS, 2, 0.5, 2, True).numpy()
    want = np.stack([np.stack([whole[:, i, j, 2 * i + j :: 4] for j in range(2)], 1) for i in range(2)], 1)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_multi_level_roi_align():
    levels = [tensor(f"level{i}"[: 3 + i], 2, 1024 // n, 512 // n, 2) for i, n in enumerate((4, 8, 16, 32))]
    rois = Tensor(shape=[4, 5], dtype="float64", name="rois", is_input=True)
    boxes = torch.tensor([[0, 40, 50, 100, 90], [1, 40, 40, 200, 170], [1, 60, 60, 350, 400], [0, 40, 40, 490, 980]])
    arrays = {t.name: data(t) for t in levels} | {"rois": boxes.double().numpy()}
    (got,) = evaluate(ops.multi_level_roi_align(2, 7, 2, 0.25, False, True, (1024, 512))(*levels, rois), arrays)
    for i, (level, n) in enumerate(zip(levels, (4, 8, 16, 32), strict=True)):
        want = pooled(torch.from_numpy(data(level)), boxes[i : i + 1].double(), 7, 1 / n, 2, True)
        np.testing.assert_allclose(got[i : i + 1], want.numpy(), rtol=1e-9, atol=1e-12)


def test_batched_nms():
    x, boxes = tensor("x", 40, 4), some_boxes(40)
    kept = suppressed(boxes, -np.arange(40.0), 0.3)
    (got,) = evaluate(ops.batched_nms(0.3)(x), {"x": boxes})
    assert np.flatnonzero(got).tolist() == kept and got.dtype == np.int64
    (got,) = evaluate(ops.batched_nms(iou_threshold=0.3, keep_n=5)(x), {"x": boxes})
    assert np.flatnonzero(got).tolist() == kept[:5]


@pytest.mark.parametrize("top, out, least", [(2000, 50, 0), (20, 6, 0), (40, 10, 2.0)])
def test_nms(top, out, least):
    x, scores = tensor("x", "batch", 40, 4), tensor("ss", "batch", 40)
    boxes, values = some_boxes(BATCH, 40), data(scores)
    (got,) = evaluate(ops.nms(top, out, 0.3, least)(x, scores), {"x": boxes, "ss": values}, batch=BATCH)
    for b in range(BATCH):
        best = np.argsort(-values[b])[:top]
        best = best[(boxes[b, best, 2:] - boxes[b, best, :2] >= least).all(-1)]
        want = boxes[b, best][suppressed(boxes[b, best], values[b, best], 0.3)][:out]
        np.testing.assert_array_equal(got[b], np.pad(want, ((0, out - len(want)), (0, 0))))


def test_efficient_nms():
    x, scores = tensor("x", "batch", 30, 3, 4), tensor("ss", "batch", 30, 3)
    boxes, values = some_boxes(BATCH, 30, 3), data(scores)
    outputs = ops.efficient_nms(preNmsTop=20, nmsMaxOut=25, iouThreshold=0.3)(x, scores)
    total, *found = evaluate(outputs, {"x": boxes, "ss": values}, batch=BATCH)
    for b in range(BATCH):
        kept = []
        for c in range(3):
            best = np.argsort(-values[b, :, c])[:20]
            for i in best[suppressed(boxes[b, best, c], values[b, best, c], 0.3)]:
                kept.append((values[b, i, c], boxes[b, i, c], c))
        kept.sort(key=lambda k: -k[0])
        assert total[b, 0] == min(len(kept), 25)
        want = [np.zeros((25, 4)), np.zeros(25), np.zeros(25)]
        for i, (score, box, c) in enumerate(kept[:25]):
            want[0][i], want[1][i], want[2][i] = box, score, c
        for w, g in zip(want, found, strict=True):
            np.testing.assert_array_equal(g[b], w)


def test_efficient_nms_with_boxes_for_all_classes():
    one, each, scores = tensor("x", "batch", 30, 1, 4), tensor("z", "batch", 30, 3, 4), tensor("ss", "batch", 30, 3)
    boxes, values = some_boxes(BATCH, 30, 1), data(scores)
    run = ops.efficient_nms(preNmsTop=20, nmsMaxOut=25, iouThreshold=0.3)
    shared = evaluate(run(one, scores), {"x": boxes, "ss": values}, batch=BATCH)
    run = ops.efficient_nms(preNmsTop=20, nmsMaxOut=25, iouThreshold=0.3)
    repeated = evaluate(run(each, scores), {"z": boxes.repeat(3, 2), "ss": values}, batch=BATCH)
    assert shared[0].min() > 0
    for s, r in zip(shared, repeated, strict=True):
        np.testing.assert_array_equal(s, r)


def test_detection_refuses_what_does_not_fit():
    x, rois = tensor("x", "batch", 9, 9, 6), Tensor(shape=[4, 5], dtype="float64", name="rois", is_input=True)
    with pytest.raises(BuildError, match=r"rois must have shape \[3, 5\]"):
        ops.roi_align(3, 2, 2, 1.0, False, False)(x, rois)
    with pytest.raises(BuildError, match="6 channels, expected a multiple of 4 bins"):
        ops.roi_align(4, 2, 2, 1.0, True, False)(x, rois)
    with pytest.raises(BuildError, match=r"the features are \[N, H, W, C\]"):
        ops.roi_align(4, 2, 2, 1.0, False, False)(rois, rois)
    with pytest.raises(BuildError, match=r"expected a 4th of the image \[64, 64\]"):
        ops.multi_level_roi_align(4, 2, 2, 0.25, False, False, [64, 64])(x, x, x, x, rois)
    with pytest.raises(BuildError, match="expected height and width"):
        ops.multi_level_roi_align(4, 2, 2, 0.25, False, False, [64])
    with pytest.raises(BuildError, match=r"boxes are \[N, R, 4\]"):
        ops.nms()(rois, rois)
    with pytest.raises(BuildError, match=r"boxes are \[N, R, classes, 4\]"):
        ops.efficient_nms()(rois, rois)
    boxes = tensor("boxes", "batch", 30, 2, 4)
    for scores in (tensor("s", "batch", 30, 3), tensor("s", "batch", 20, 2)):
        with pytest.raises(BuildError, match=r"efficient_nms.*N, R and classes of the scores"):
            ops.efficient_nms()(boxes, scores)
    with pytest.raises(BuildError, match=r"efficient_nms.*boxes are \[N, R, classes, 4\], or"):
        ops.efficient_nms()(tensor("wide", "batch", 30, 2, 5), tensor("s", "batch", 30, 2))
    with pytest.raises(BuildError, match=r"boxes are \[N, 4\]"):
        ops.batched_nms()(x)
