"""Pooling over one to three spatial dims: windows, pads, steps, adaptive sizes, places, views."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Spec, form
from tests.specs.tolerance import SUMS

NUMBERS = (*FLOATS, *INTEGERS)
NCHW = {0: ("h*7*8", "7", "1", "h*7"), 1: ("h*7*8", "7", "1", "h*7")}
ENVS = ({"b": 2, "h": 9}, {"b": 1, "h": 1}, {"b": 0, "h": 5}, {"b": 3, "h": 33})
FEW = ({"b": 2, "h": 5}, {"b": 1, "h": 1}, {"b": 0, "h": 5})

POOL = Spec(
    "pool",
    (
        form(
            "max", "pool max %a window [3, 3] stride [2, 2] pad [1, 1]", "b x h x 11 x 16 x T",
            to="b x ((h - 1) floordiv 2 + 1) x 6 x 16 x T", types=NUMBERS,
        ),
        form(
            "max-dilated", "pool max %a window [2, 3] pad [1, 0, 2, 3] dilation [2, 3] ceil", "b x h x 9 x 5 x T",
            to="b x (h + 1) x 6 x 5 x T", types=NUMBERS,
        ),
        form(
            "places", "pool max %a window [3, 2] stride [1, 2] pad [1, 0]", "b x h x 6 x 8 x T",
            to=("b x h x 3 x 8 x T", "b x h x 3 x 8 x i64"), types=NUMBERS,
        ),
        form(
            "places-nchw", "pool max %a window [3, 3] pad [1, 1]", "b x h x 7 x 8 x T", strides=NCHW,
            to=("b x h x 7 x 8 x T", "b x h x 7 x 8 x i32"),
        ),
        form(
            "mean", "pool mean %a window [2, 3] stride [1, 2] pad [1, 1, 0, 1]", "b x h x 8 x 24 x T",
            to="b x h x 4 x 24 x T",
        ),
        form(
            "mean-ceil", "pool mean %a window [3] stride [2] pad [1] ceil exclude_pad", "b x h x 7 x T",
            to="b x (min(h floordiv 2 + 1, (h + 1) ceildiv 2)) x 7 x T", without=frozenset({"graphs"}),
        ),
        form("mean-divisor", "pool mean %a window [1, 2] divisor -3", "b x h x 7 x 8 x T", to="b x h x 6 x 8 x T"),
        form("mean-nchw", "pool mean %a window [3, 3] pad [1, 1]", "b x h x 7 x 8 x T", strides=NCHW),
        form(
            "volume", "pool max %a window [1, 2, 3] stride [1, 1, 2] pad [0, 1, 0]", "b x h x 3 x 5 x 8 x T",
            to="b x h x 4 x 2 x 8 x T",
        ),
        form(
            "max-tiles", "pool max %a window [3, 3] stride [2, 2] pad [1, 1]", "b x h x 63 x 72 x T",
            to="b x ((h - 1) floordiv 2 + 1) x 32 x 72 x T", types=NUMBERS,
        ),
        form(
            "max-tiles-line", "pool max %a window [1, 3] pad [0, 1]", "b x h x 31 x 72 x T", types=NUMBERS,
        ),
        form("mean-tiles", "pool mean %a window [2, 1] stride [2, 1]", "b x 32 x h x 72 x T", to="b x 16 x h x 72 x T"),
        form(
            "mean-tiles-padded", "pool mean %a window [2, 3] stride [2, 1] pad [1, 0, 0, 0]", "b x h x 33 x 72 x T",
            to="b x ((h - 1) floordiv 2 + 1) x 31 x 72 x T",
        ),
        form("mean-tiles-exclude", "pool mean %a window [3, 3] pad [1, 1] exclude_pad", "b x h x 31 x 72 x T"),
        form(
            "view", "pool max %a window [1, 3] pad [0, 1]", "b x h x 6 x 8 x T",
            strides={0: ("h*96 + 5", "96", "16", "1"), 1: ("h*48", "8", "8*h", "1")}, offset=1,
        ),
    ),
    SUMS,
    "b = 0 to 8, h = 1 to 64",
    ENVS,
    FEW,
)  # fmt: skip

ADAPTIVE_POOL = Spec(
    "adaptive_pool",
    (
        form("mean", "adaptive_pool mean %a", "b x h x 11 x 16 x T", to="b x 7 x 4 x 16 x T"),
        form("mean-nchw", "adaptive_pool mean %a", "b x h x 7 x 8 x T", strides={0: NCHW[0]}, to="b x 5 x 7 x 8 x T"),
        form("mean-dynamic", "adaptive_pool mean %a", "b x 7 x 3 x T", to="b x h x 3 x T"),
        form("max", "adaptive_pool max %a", "b x h x 5 x 3 x T", to="b x (2*h) x 3 x 3 x T", types=NUMBERS),
        form(
            "places", "adaptive_pool max %a", "b x h x 2 x 3 x 8 x T",
            to=("b x 3 x 1 x 2 x 8 x T", "b x 3 x 1 x 2 x 8 x i64"), types=NUMBERS,
        ),
    ),
    SUMS,
    "b = 0 to 8, h = 1 to 64",
    ENVS,
    FEW,
)  # fmt: skip

OVERLAP_ADD = Spec(
    "overlap_add",
    (
        form("image", "overlap_add %a stride [2, 2] before [1, 1]", "b x 3 x 4 x 4 x h x 5 x T", to="b x 3 x (2*h) x 10 x T"),
        form("odd", "overlap_add %a stride [2, 1] before [1, 0]", "b x 3 x 2 x h x 7 x T", to="b x (2*h) x 9 x T"),
        form(
            "dilated", "overlap_add %a stride [2, 3] dilation [3, 1] before [0, 2]", "b x 2 x 2 x 4 x h x 5 x T",
            to="b x 2 x (2*h + 2) x 13 x T",
        ),
        form("frames", "overlap_add %a stride [3]", "b x 7 x h x T", to="b x (3*h + 4) x T", strides={0: ("7*h", "1", "7")}, offset=1),
        form("one", "overlap_add %a stride [1]", "3 x h x T", to="(h + 2) x T"),
        form(
            "volume", "overlap_add %a stride [1, 2, 1] before [1, 0, 0]", "b x 2 x 2 x 3 x h x 3 x 2 x T", to="b x h x 6 x 4 x T",
            types=("f16", "i32"),
        ),
    ),
    SUMS, "b = 0 to 8, h = 1 to 64", ENVS, FEW, NUMBERS,
)  # fmt: skip

SPECS = (POOL, ADAPTIVE_POOL, OVERLAP_ADD)
