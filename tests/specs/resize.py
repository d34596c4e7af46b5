"""Resampling: each mode, sizes and scales, one to three dims, views."""

from __future__ import annotations

from dataclasses import replace

from tests.specs.spec import FLOATS, INTEGERS, Spec, form
from tests.specs.tolerance import SUMS

NCHW = ("h*7*8", "7", "1", "h*7")
NUMBERS = (*FLOATS, *INTEGERS, "i1")

RESIZE = Spec(
    "resize",
    (
        form("nearest", "resize nearest %a", "b x h x 7 x 16 x T", to="b x (2*h) x 14 x 16 x T", types=NUMBERS),
        form("nearest-nchw", "resize nearest %a scales [0.7, 1.6]", "b x h x 7 x 8 x T", to="b x 5 x 11 x 8 x T", strides={0: NCHW}),
        form("exact", "resize nearest_exact %a", "b x h x 7 x 5 x T", to="b x 6 x h x 5 x T", types=NUMBERS),
        form("nearest-kept", "resize nearest %a scales [1.2, 2.4]", "b x h x 3 x 8 x T", to="b x h x 6 x 8 x T"),
        form("exact-kept", "resize nearest_exact %a scales [1.2, 2.4]", "b x h x 3 x 8 x T", to="b x h x 6 x 8 x T"),
        form("linear-kept", "resize linear %a scales [1.2, 2.1]", "b x h x 4 x 8 x T", to="b x h x 8 x 8 x T"),
        form("linear", "resize linear %a", "b x h x 5 x 24 x T", to="b x (2*h) x 8 x 24 x T"),
        form("corners", "resize linear %a align_corners", "b x h x 5 x 7 x T", to="b x (h + 3) x 1 x 7 x T"),
        form("scales", "resize linear %a scales [1.7, 0.0]", "b x h x 4 x 8 x T", to="b x 9 x 7 x 8 x T"),
        form("linear-nchw", "resize linear %a", "b x h x 7 x 8 x T", to="b x 5 x h x 8 x T", strides={0: NCHW, 1: ("h*40", "h", "1", "5*h")}),
        form("line", "resize linear %a align_corners", "b x h x 8 x T", to="b x 12 x 8 x T"),
        form("volume", "resize linear %a", "b x 2 x h x 3 x 8 x T", to="b x 3 x 4 x 5 x 8 x T"),
        form("double-nearest", "resize nearest %a", "b x h x 16 x 24 x T", to="b x (2*h) x 32 x 24 x T", types=NUMBERS),
        form("double-linear", "resize linear %a", "b x h x 15 x 24 x T", to="b x (2*h) x 30 x 24 x T"),
        form("double-line", "resize linear %a scales [2.0, 2.0]", "b x 1 x h x 200 x T", to="b x 2 x (2*h) x 200 x T"),
        form("double-cubic", "resize cubic %a", "b x h x 2 x 200 x T", to="b x (2*h) x 4 x 200 x T"),
        form("cubic", "resize cubic %a", "b x h x 5 x 8 x T", to="b x (2*h) x 4 x 8 x T"),
        form("cubic-corners", "resize cubic %a align_corners", "b x h x 5 x 3 x T", to="b x 4 x 9 x 3 x T"),
    ),
    SUMS,
    "b = 0 to 8, h = 1 to 64",
    ({"b": 2, "h": 9}, {"b": 1, "h": 1}, {"b": 0, "h": 5}, {"b": 3, "h": 33}),
    ({"b": 2, "h": 5}, {"b": 1, "h": 1}, {"b": 0, "h": 5}),
)  # fmt: skip

PLACES = replace(SUMS, floor={**SUMS.floor, "f64": 1e-13})
"""A place a hundred elements outside is known to an ulp of a hundred, which is in the fraction between two elements."""

GRID_SAMPLE = Spec(
    "grid_sample",
    (
        form("zeros", "grid_sample linear zeros %a, %b", "b x h x 7 x 16 x T", "b x 3 x h x 2 x T", to="b x 3 x h x 16 x T"),
        form("corners", "grid_sample linear border %a, %b align_corners", "b x h x 7 x 5 x T", "b x 3 x 4 x 2 x T", to="b x 3 x 4 x 5 x T"),
        form("mirrored", "grid_sample linear reflection %a, %b", "b x h x 7 x 8 x T", "b x 3 x 4 x 2 x T", to="b x 3 x 4 x 8 x T"),
        form("nearest", "grid_sample nearest reflection %a, %b align_corners", "b x h x 6 x 8 x T", "b x 3 x 4 x 2 x T", to="b x 3 x 4 x 8 x T"),
        form("cubic", "grid_sample cubic zeros %a, %b", "b x h x 7 x 8 x T", "b x 3 x 4 x 2 x T", to="b x 3 x 4 x 8 x T"),
        form(
            "zeros-nchw", "grid_sample linear zeros %a, %b", "b x h x 7 x 21 x T", "b x 3 x 4 x 2 x T", to="b x 3 x 4 x 21 x T",
            strides={0: ("147*h", "7", "1", "7*h"), 2: ("252", "4", "1", "12")},
        ),
        form(
            "cubic-view", "grid_sample cubic border %a, %b", "b x h x 7 x 8 x T", "b x 3 x 4 x 2 x T", to="b x 3 x 4 x 8 x T",
            strides={0: NCHW, 1: ("24", "4", "1", "12"), 2: ("96", "4", "1", "12")}, offset=1,
        ),
    ),
    PLACES,
    "b = 0 to 8, h = 1 to 64",
    ({"b": 2, "h": 9}, {"b": 1, "h": 1}, {"b": 0, "h": 5}, {"b": 3, "h": 33}),
    ({"b": 2, "h": 5}, {"b": 1, "h": 1}, {"b": 0, "h": 5}),
    without={"graphs": "it would jump where a place is nearly on an edge"},
)  # fmt: skip

SPECS = (RESIZE, GRID_SAMPLE)
