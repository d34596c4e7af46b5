"""Views: as copies, row-major and strided on both sides."""

from __future__ import annotations

from tests.specs.spec import Spec, form
from tests.specs.tolerance import BITS

DIMS = "b = 0 to 64, s = 0 to 64"
ENVS = ({"b": 2, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 7}, {"b": 37, "s": 41})
FEW = ENVS[:3]
SQUARES = (*FEW, {"b": 24, "s": 40}, {"b": 24, "s": 41})
TYPES = ("i8", "ui8", "f16", "f32", "i64")

PERMUTE = Spec(
    "permute",
    (
        form("heads", "permute %a [0, 2, 1, 3]", "b x s x 3 x 16 x T", to="b x 3 x s x 16 x T"),
        form("transpose", "permute %a [1, 0]", "b x s x T", to="s x b x T", few=SQUARES),
        form("odd", "permute %a [0, 2, 1]", "b x s x 7 x T", to="b x 7 x s x T", few=SQUARES, offset=1),
        form(
            "nine", "permute %a [0, 2, 1]", "b x s x 9 x T", to="b x 9 x s x T",
            few=SQUARES, offset=1, both=True,
        ),
        form("last", "permute %a [0, 2, 1]", "b x 3 x s x T", to="b x s x 3 x T", few=SQUARES),
        form(
            "tiles", "permute %a [1, 0]", "300 x 203 x T", to="203 x 300 x T",
            strides={0: ("208", "1"), 1: ("304", "1")}, few=ENVS[:1],
        ),
        form("odd-tiles", "permute %a [1, 0]", "304 x 203 x T", to="203 x 304 x T", few=ENVS[:1]),
        form(
            "odd-batches", "permute %a [0, 2, 1]", "3 x 304 x 203 x T", to="3 x 203 x 304 x T",
            strides={0: ("61713", "203", "1")}, few=ENVS[:1],
        ),
        form(
            "even-batches", "permute %a [0, 2, 1]", "3 x 304 x 202 x T", to="3 x 202 x 304 x T",
            strides={0: ("61409", "202", "1")}, few=ENVS[:1],
        ),
        form("runs", "permute %a [2, 1, 3, 0]", "40 x 3 x 13 x 14 x T", to="13 x 3 x 14 x 40 x T", few=ENVS[:1]),
        form("odd-runs", "permute %a [2, 1, 3, 0]", "37 x 3 x 13 x 14 x T", to="13 x 3 x 14 x 37 x T", few=ENVS[:1]),
        form("short-runs", "permute %a [2, 1, 3, 0]", "16 x 2 x 50 x 3 x T", to="50 x 2 x 3 x 16 x T", few=ENVS[:1]),
        form("few-runs", "permute %a [0, 3, 2, 1]", "b x 16 x 3 x 2 x T", to="b x 2 x 3 x 16 x T"),
        form("pixels", "permute %a [0, 2, 1]", "b x 48 x 4 x T", to="b x 4 x 48 x T"),
        form("planes", "permute %a [0, 2, 1]", "b x 2 x 48 x T", to="b x 48 x 2 x T", strides={0: ("112", "48", "1")}),
        form("words", "permute %a [0, 2, 1, 3]", "b x 20 x 9 x 4 x T", to="b x 9 x 20 x 4 x T"),
        form("pairs", "permute %a [0, 2, 1, 3]", "b x 20 x 9 x 2 x T", to="b x 9 x 20 x 2 x T", strides={0: ("368", "18", "2", "1")}),
        form("reverse", "permute %a [3, 2, 1, 0]", "b x 3 x s x 5 x T", to="5 x s x 3 x b x T"),
        form("bools", "permute %a [1, 0]", "b x s x T", to="s x b x T", types=("i1",)),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip
RESHAPE = Spec(
    "reshape",
    (
        form("same", "reshape %a", "b x s x 8 x T"),
        form("flatten", "reshape %a", "b x s x 8 x T", to="(b * s) x 8 x T"),
        form(
            "split-heads", "reshape %a", "b x s x 48 x T", to="b x s x 3 x 16 x T", strides={0: ("s*64", "64", "1")}
        ),
        form(
            "merge-heads", "reshape %a", "b x s x 3 x 16 x T", to="b x s x 48 x T",
            strides={0: ("48*s", "16", "16*s", "1")},
        ),
        form("into-view", "reshape %a", "b x s x 3 x 16 x T", to="b x s x 48 x T", strides={1: ("96*s", "96", "1")}),
        form("regroup", "reshape %a", "b x 4 x 6 x T", to="b x 6 x 4 x T", strides={0: ("48", "12", "2")}),
        form("long-rows", "reshape %a", "b x s x 277 x T", offset=3, strides={1: ("s*290", "290", "1")}),
        form("scalar", "reshape %a", "T", to="1 x 1 x T"),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip
EXPAND = Spec(
    "expand",
    (
        form("rows", "expand %a", "s x 1 x T", to="b x s x 9 x T"),
        form("scalar", "expand %a", "T", to="b x 2 x T"),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip
SLICE = Spec(
    "slice",
    (
        form("", "slice %a offsets [0, s, 3]", "b x (s + 3) x 12 x T", to="b x 2 x 8 x T"),
        form("long-rows", "slice %a offsets [0, 0, 5]", "b x s x 301 x T", to="b x s x 283 x T"),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip
SPLIT = Spec(
    "split",
    (
        form("", "split %a dim 1", "b x 24 x s x T", to=("b x 8 x s x T", "b x 12 x s x T", "b x 4 x s x T")),
        form(
            "last", "split %a dim 2", "b x s x 48 x T", to=("b x s x 16 x T", "b x s x 32 x T"),
            strides={0: ("s*50", "50", "1")},
        ),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip
CONCAT = Spec(
    "concat",
    (
        form(
            "", "concat %a, %b, %c dim 1", "b x s x 4 x T", "b x 2 x 4 x T", "b x (2*s) x 4 x T",
            to="b x (3*s + 2) x 4 x T",
        ),
        form(
            "last", "concat %a, %b dim 1", "b x 8 x T", "b x 16 x T", to="b x 24 x T",
            strides={0: ("1", "b"), 2: ("30", "1")}, offset=2,
        ),
        form("one", "concat %a dim 0", "b x 8 x T"),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip

PIECES = ("b x s x T", "s x 24 x T", "b x 3 x s x 5 x T")
COPIES = Spec(
    "copies",
    (
        form("rows", "copies %a, %b, %c", *PIECES, to=PIECES),
        form(
            "strided", "copies %a, %b, %c", *PIECES, to=PIECES, offset=1,
            strides={0: ("1", "b"), 1: ("48", "2"), 2: ("15*s", "1", "15", "3"), 3: ("s + 3", "1"), 4: ("1", "s")},
        ),
        form(
            "words", "copies %a, %b", "b x 16 x T", "b x 48 x T", to=("b x 16 x T", "b x 48 x T"),
            strides={0: ("64", "1"), 2: ("80", "1"), 3: ("80", "1")},
        ),
        form("types", "copies %a, %b", "b x f16", "s x bf16", to=("b x f16", "s x bf16"), types=("f16",)),
        form("one", "copies %a", "T"),
    ),
    BITS, DIMS, ENVS, FEW, TYPES,
)  # fmt: skip

SPECS = (PERMUTE, RESHAPE, EXPAND, SLICE, SPLIT, CONCAT, COPIES)
