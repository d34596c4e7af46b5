"""Features of regions and suppression of boxes."""

from __future__ import annotations

from tests.specs.spec import Spec, form
from tests.specs.tolerance import BITS, SUMS

JUMPS = "it would jump where a box is nearly on a limit"
INSIDE = {1: 13}
"""Of regions: all numbers are below the number of images."""
ENVS = ({"n": 5, "h": 9}, {"n": 1, "h": 1}, {"n": 0, "h": 4}, {"n": 33, "h": 17})
FEW = ({"n": 3, "h": 5}, {"n": 1, "h": 1}, {"n": 0, "h": 4})

ROI_ALIGN = Spec(
    "roi_align",
    (
        form(
            "bins", "roi_align %a rois %b scales [0.5] sampling 2 aligned", "13 x h x 6 x 16 x T", "n x 5 x T",
            to="n x 3 x 2 x 16 x T", below=INSIDE,
        ),
        form(
            "by-size", "roi_align %a rois %b scales [1.3]", "13 x h x 7 x 5 x T", "n x 5 x f32",
            to="n x 2 x 3 x 5 x T", below=INSIDE,
        ),
        form(
            "positions", "roi_align %a rois %b scales [1.0] sampling 1 position_sensitive", "13 x h x 4 x 24 x T",
            "n x 5 x T", to="n x 2 x 4 x 3 x T", below=INSIDE,
        ),
        form(
            "levels", "roi_align %a, %b, %c rois %d scales [1.0, 0.5, 0.25] aligned second_from 2.5", "13 x h x 9 x 8 x T",
            "13 x 5 x h x 8 x T", "13 x 2 x 1 x 8 x T", "n x 5 x T", to="n x 2 x 2 x 8 x T", below={3: 13},
        ),
        form(
            "view", "roi_align %a rois %b scales [0.5] sampling 3", "13 x h x 6 x 8 x T", "n x 5 x T", to="n x 2 x 2 x 8 x T",
            strides={0: ("h*48", "6", "1", "h*6"), 1: ("1", "n"), 2: ("64", "32", "16", "2")}, offset=1, below=INSIDE,
        ),
    ),
    SUMS, "n = 0 to 300, h = 1 to 64", ENVS, FEW, without={"graphs": JUMPS},
)  # fmt: skip

NMS = Spec(
    "nms",
    (
        form("boxes", "nms %a iou 0.37", "n x 4 x T", to="n x i1"),
        form("valid", "nms %a valid %b iou 0.21", "h x n x 4 x T", "h x n x i1", to="h x n x i1"),
        form("batches", "nms %a iou 0.0", "2 x h x n x 4 x T", to="2 x h x n x i1"),
    ),
    BITS,
    "n = 0 to 300, h = 0 to 64",
    ({"n": 5, "h": 3}, {"n": 1, "h": 1}, {"n": 0, "h": 2}, {"n": 300, "h": 2}, {"n": 64, "h": 0}),
    ({"n": 5, "h": 2}, {"n": 130, "h": 1}, {"n": 0, "h": 2}),
    without={"graphs": JUMPS},
)  # fmt: skip

SPECS = (ROI_ALIGN, NMS)
