"""Rows of a table."""

from __future__ import annotations

from tests.specs.spec import Spec, form
from tests.specs.tolerance import BITS

STRIDED = {0: ("30", "1"), 1: ("1", "2*b"), 2: ("s*50", "50", "1")}

EMBEDDING = Spec(
    "embedding",
    tuple(
        form(
            f"{layout}-{ids}", "embedding %a, %b", "11 x 24 x T", f"b x s x {ids}", to="b x s x 24 x T", below={1: 11},
            strides=STRIDED if layout == "strided" else {}, offset=int(layout == "strided"),
        )
        for layout in ("plain", "strided")
        for ids in ("i32", "i64")
    ),
    BITS,
    "b = 0 to 9, s = 0 to 900",
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 8, "s": 700}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 2, "s": 70}),
    ("f16", "bf16", "f32", "i8", "i64"),
)  # fmt: skip

SPECS = (EMBEDDING,)
