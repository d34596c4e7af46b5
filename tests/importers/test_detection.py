"""The rows for torchvision's operations. Where it is not installed, the operations are defined here by their schemas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim

from ait_mlir.importers.torch import from_torch
from ait_mlir.reference.graph import evaluate_graph
from tests.frontend.boxes import pooled, some_boxes, suppressed

SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
}


def fake_nms(dets, scores, iou_threshold):
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def fake_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    return input.new_empty(rois.shape[0], input.shape[1], pooled_height, pooled_width)


@pytest.fixture(scope="module")
def torchvision():
    """The operations, of torchvision or of our own."""
    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name, fake in (("nms", fake_nms), ("roi_align", fake_roi_align)):
            library.define(name + SCHEMAS[name])
            torch.library.register_fake(f"torchvision::{name}", fake, lib=library)
        yield torch.ops.torchvision
        library._destroy()
    else:
        yield torch.ops.torchvision


class Kept(torch.nn.Module):
    def forward(self, boxes, scores):
        return boxes[torch.ops.torchvision.nms(boxes, scores, 0.3)]


class Features(torch.nn.Module):
    def forward(self, x, rois):
        return torch.ops.torchvision.roi_align(x, rois, 0.5, 3, 3, 2, True) + 1


def run(imported, arrays, dims):
    named = dict(zip([item.name for item in imported.inputs.tensors], arrays, strict=True))
    results = evaluate_graph(imported.graph, named, imported.constants, dims)
    return results[imported.outputs[0][1]]


def test_nms(torchvision):
    n = Dim("n", min=1, max=50)
    boxes, scores = some_boxes(30), np.random.default_rng(5).standard_normal(30)
    given = torch.from_numpy(boxes), torch.from_numpy(scores)
    imported = from_torch(Kept().eval(), given, dynamic_shapes=({0: n}, {0: n}))
    imported.module.verify()
    for count in (30, 7, 1):
        got = run(imported, [boxes[:count], scores[:count]], {"n": count})
        np.testing.assert_array_equal(got, boxes[:count][suppressed(boxes[:count], scores[:count], 0.3)])


def test_roi_align(torchvision):
    x = np.random.default_rng(1).standard_normal((2, 4, 9, 9))
    rois = np.array([[0, 2, 3, 12, 10], [1, 4.5, 1, 9, 15.5], [1, 6, 6, 7, 7.25]])
    shapes = ({0: Dim("batch", min=1, max=4)}, {0: Dim("n", min=1, max=9)})
    imported = from_torch(Features().eval(), (torch.from_numpy(x), torch.from_numpy(rois)), dynamic_shapes=shapes)
    imported.module.verify()
    got = run(imported, [x, rois], {"batch": 2, "n": 3})
    want = pooled(torch.from_numpy(x).permute(0, 2, 3, 1), torch.from_numpy(rois), 3, 0.5, 2, True) + 1
    np.testing.assert_allclose(got, want.permute(0, 3, 1, 2).numpy(), rtol=1e-9, atol=1e-12)
