"""Sorting along any dim, searching in sorted rows, counting."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Spec, form
from tests.specs.tolerance import BITS

ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 70, "s": 33}, {"b": 2, "s": 9001})
FEW = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 70, "s": 33})
LONG = ({"b": 1, "s": 4096}, {"b": 2, "s": 9001}, {"b": 17, "s": 4097}, {"b": 3, "s": 300})
"""As much as a block sorts, more, more in more rows than clusters sort, and less."""
DIMS = "b = 0 to 70, s = 0 to 10000"
JUMPS = "it would jump where two elements are nearly equal"
ALL = (*FLOATS, *INTEGERS, "i1")
SORT = Spec(
    "sort",
    (
        form("last", "sort %a dim 1", "b x s x T", to=("b x s x T", "b x s x i64")),
        form("down", "sort %a dim 1 descending", "b x s x T", to=("b x s x T", "b x s x i32")),
        form("first", "sort %a dim 0 descending", "s x b x T", to=("s x b x T", "s x b x i64")),
        form("middle", "sort %a dim 1", "b x s x 3 x T", to=("b x s x 3 x T", "b x s x 3 x i64"), types=("f16", "i64")),
        form("vector", "sort %a dim 0", "s x T", to=("s x T", "s x i64")),
        form("short", "sort %a dim 1", "b x 7 x T", to=("b x 7 x T", "b x 7 x i64")),
        form(
            "view", "sort %a dim 1 descending", "b x s x T", to=("b x s x T", "b x s x i64"), types=("bf16", "i8"),
            strides={0: ("s + 8", "1"), 1: ("2*s", "2"), 2: ("1", "b")}, offset=1,
        ),
        form(
            "columns", "sort %a dim 0", "1100 x b x T", to=("1100 x b x T", "1100 x b x i64"), types=("bf16", "f64"), both=True,
        ),
        # as many elements as 16 and 32 registers of each lane hold
        form("wide", "sort %a dim 1", "b x 400 x T", to=("b x 400 x T", "b x 400 x i64"), types=("f32", "i64"), both=True),
        form("widest", "sort %a dim 0 descending", "1000 x b x T", to=("1000 x b x T", "1000 x b x i64"), types=("bf16", "f32"), both=True),
        form(
            "turned", "sort %a dim 0", "300 x b x T", to=("300 x b x T", "300 x b x i64"), types=("f16", "i8"),
            strides={0: ("1", "300")}, both=True,
        ),
        form("long", "sort %a dim 1", "b x s x T", to=("b x s x T", "b x s x i64"), types=("f16", "f64"), envs=LONG, few=LONG, both=True),
    ),
    BITS, DIMS, ENVS, FEW, ALL, {"b": 7, "s": 9}, {"graphs": JUMPS},
)  # fmt: skip

KTH_LONG = ({"b": 2, "s": 4097}, {"b": 1, "s": 9001}, {"b": 1, "s": 8192})
MEDIAN = "[s ceildiv 2]"
KTH_ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 70, "s": 33}, {"b": 2, "s": 9001})
COLUMNS = ("1", "b")
SHORT = (
    (3, 2, "", ("f16", "i1"), "", None),
    (16, 16, " nan_first", ("bf16", "f64"), "-columns", COLUMNS),
    (57, 16, "", ("bf16", "f32"), "", None),
    (100, 62, "", ("f16", "i8"), "-columns", COLUMNS),
    (1000, 425, "", ("f16", "i64"), "-columns", COLUMNS),
    (1024, 1, " nan_first", ("f32",), "", None),
    (1500, 700, " nan_first", ("bf16",), "", None),
)
"""Rows of one length that a thread, lanes of a warp, or a block hold; read along the rows, or across them."""
KTH_VALUE = Spec(
    "kth_value",
    (
        form("median", f"kth_value %a k {MEDIAN} dim 1 nan_first", "b x s x T", to=("b x T", "b x i64"), types=FLOATS),
        form("last", "kth_value %a k [s] dim 1", "b x s x T", to=("b x T", "b x i32")),
        form("first", f"kth_value %a k {MEDIAN} dim 0", "s x b x T", to=("b x T", "b x i64")),
        form("middle", "kth_value %a k [1] dim 1", "b x s x 3 x T", to=("b x 3 x T", "b x 3 x i64"), types=("f16", "i64")),
        form("vector", f"kth_value %a k {MEDIAN} dim 0", "s x T", to=("T", "i64")),
        form(
            "view", f"kth_value %a k {MEDIAN} dim 1", "b x s x T", to=("b x T", "b x i64"), types=("bf16", "i8"),
            strides={0: ("s + 8", "1"), 1: ("2",), 2: ("1",)}, offset=1,
        ),
        *(
            form(
                f"{length}{order}", f"kth_value %a k [{k}] dim 1{nan}", f"b x {length} x T", to=("b x T", "b x i64"), types=types,
                strides={0: strides} if strides else {},
            )
            for length, k, nan, types, order, strides in SHORT
        ),
        form(
            "long", f"kth_value %a k {MEDIAN} dim 1 nan_first", "b x s x T", to=("b x T", "b x i64"), types=("f16", "f64"),
            envs=KTH_LONG, few=KTH_LONG, both=True,
        ),
    ),
    BITS, "b = 0 to 70, s = 1 to 10000", KTH_ENVS, KTH_ENVS[:4], ALL, {"b": 7, "s": 9}, {"graphs": JUMPS},
)  # fmt: skip

SEARCH_ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 0}, {"b": 2, "s": 300}, {"b": 0, "s": 4})
SEARCH_SORTED = Spec(
    "search_sorted",
    (
        form("one-row", "search_sorted %a, %b", "s x T", "b x 9 x T", to="b x 9 x i64"),
        form("rows", "search_sorted %a, %b right", "b x s x T", "b x 5 x T", to="b x 5 x i32"),
        form("one", "search_sorted %a, %b right", "s x T", "T", to="i64"),
        form(
            "view", "search_sorted %a, %b", "b x s x T", "b x 5 x T", to="b x 5 x i64",
            strides={0: ("2*s", "2"), 1: ("1", "b"), 2: ("7", "1")},
        ),
    ),
    BITS, DIMS, SEARCH_ENVS, SEARCH_ENVS, (*FLOATS, *INTEGERS), without={"graphs": JUMPS},
)  # fmt: skip

COUNT_ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 0}, {"b": 1, "s": 1}, {"b": 9, "s": 9001})
COUNT_FEW = (*COUNT_ENVS[:3], {"b": 2, "s": 4000})
HISTOGRAM = Spec(
    "histogram",
    (
        form("few", "histogram %a bins 8", "b x s x T", to="8 x i64", below={0: 9}),
        form("many", "histogram %a bins 100", "b x s x T", to="100 x i32"),
        form("large", "histogram %a bins 5000", "b x s x T", to="5000 x i64", below={0: 6000}, types=("i32", "i64")),
    ),
    BITS, DIMS, COUNT_ENVS, COUNT_FEW, INTEGERS, without={"graphs": "its operand would be made of floats"},
)  # fmt: skip

ORDER_FEW = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 2, "s": 300}, {"b": 1, "s": 4200})
ORDER_LONG = ({"b": 1, "s": 40_000}, {"b": 1, "s": 70_000})
"""What a cluster of blocks sorts, and more."""
_TO = ("s x i32", "s x i32")
ORDER = Spec(
    "order",
    (
        form("one", "order %a sizes [11]", "s x T", to=_TO, below={0: 11}),
        form("large", "order %a sizes [70000]", "s x T", to=_TO, below={0: 70000}),
        form("view", "order %a sizes [11]", "b x s x T", to=("b*s x i32",) * 2, below={0: 11}, strides={0: ("1", "b")}, offset=1),
        form(
            "two", "order %a, %b sizes [s + 7, 3]", "b x 1 x T", "3 x T", to=("3*b x i32",) * 2, below={0: 7, 1: 3},
        ),
        form("longest", "order %a sizes [300]", "s x T", to=_TO, below={0: 300}, types=("i64",), envs=ORDER_LONG, few=ORDER_LONG),
        form("scalar", "order %a sizes [s]", "T", to=("1 x i32", "1 x i32"), below={0: 1}),
    ),
    BITS, "b = 0 to 70, s = 1 to 100000", (*ORDER_FEW, {"b": 3, "s": 9001}), ORDER_FEW, ("i32", "i64"),
    without={"graphs": "its operand would be made of floats"},
)  # fmt: skip

SPECS = (SORT, KTH_VALUE, SEARCH_SORTED, HISTOGRAM, ORDER)
