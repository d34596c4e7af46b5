"""Padding and cropping: each mode, one or several dims, wide words, views."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Spec, form
from tests.specs.tolerance import BITS

PAD = Spec(
    "pad",
    (
        form("rows", "pad constant %a before [0, 1, 2, 0]", "b x s x 5 x 16 x T", to="b x (s + 2) x 8 x 16 x T"),
        form("last", "pad constant %a before [0, 3] value 1", "b x s x T", to="b x (s + 5) x T"),
        form("wide", "pad constant %a before [8, 0]", "s x 64 x T", to="(s + 8) x 64 x T"),
        form("crop", "pad constant %a before [0, -1, 0] value 1", "b x 5 x s x T", to="b x 3 x (s + 2) x T"),
        form(
            "dynamic", "pad constant %a before [0, s] value 1", "b x (2*s + 1) x T", to="b x (2*s + 6) x T",
        ),
        form("reflect", "pad reflect %a before [0, 2, 1, 0]", "b x (s + 3) x 4 x 8 x T", to="b x (s + 5) x 6 x 8 x T"),
        form("reflect-last", "pad reflect %a before [0, 1]", "b x (s + 3) x T", to="b x (s + 6) x T"),
        form("replicate", "pad replicate %a before [0, 2, -1]", "b x (s + 1) x 4 x T", to="b x (s + 6) x 4 x T"),
        form("replicate-rows", "pad replicate %a before [0, 2, 0]", "b x 3 x 8 x T", to="b x 9 x 8 x T"),
        form("circular", "pad circular %a before [0, 2, 0]", "b x (s + 2) x 8 x T", to="b x (s + 3) x 8 x T"),
        form("circular-last", "pad circular %a before [-1, 2]", "(b + 1) x 4 x T", to="b x 9 x T"),
        form(
            "view", "pad constant %a before [0, 0, 1, 1] value 1", "b x 8 x 8 x s x T", to="b x 8 x 8 x s x T",
            strides={0: ("s*64 + 3", "s", "s*8", "1"), 1: ("64*s", "8*s", "s", "1")}, offset=1,
        ),
        form("channels", "pad constant %a before [0, 1, 0]", "b x s x 3 x T", to="b x (s + 2) x 4 x T"),
        form("channels-view", "pad constant %a before [0, 0, 1] value 1", "b x s x 3 x T", to="b x s x 8 x T", strides={0: ("3*s + 1", "3", "1")}),
        form("channels-mirrored", "pad reflect %a before [0, 1, 2]", "b x (s + 2) x 5 x T", to="b x (s + 3) x 8 x T"),
        form("one", "pad constant %a before [1]", "1 x T", to="3 x T"),
    ),
    BITS,
    "b = 0 to 64, s = 0 to 3000",
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 257}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}),
    (*FLOATS, *INTEGERS, "i1"),
)  # fmt: skip

SPECS = (PAD,)
