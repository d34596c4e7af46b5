"""Cumulative sums along any dim."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Spec, form
from tests.specs.tolerance import PARTIAL_SUMS

LONG = [{"b": 2, "s": 70001}]
CUMSUM = Spec(
    "cumsum",
    (
        form("last", "cumsum %a dim 1", "b x s x T"),
        form("last-both", "cumsum %a dim 1 exclusive reverse", "b x s x T"),
        form("middle", "cumsum %a dim 1", "b x s x 9 x T"),
        form("middle-reverse", "cumsum %a dim 1 reverse", "b x s x 9 x T"),
        form("first-exclusive", "cumsum %a dim 0 exclusive", "s x b x 3 x T"),
        form("wide", "cumsum %a dim 0", "s x 264 x T"),
        form("vector", "cumsum %a dim 0", "s x T"),
        form("one", "cumsum %a dim 1", "b x s x 1 x T"),
        form("view", "cumsum %a dim 1", "b x s x T", strides={0: ("s + 3", "1")}, offset=1),
        form(
            "turned", "cumsum %a dim 1 reverse", "b x s x T",
            strides={0: ("1", "b"), 1: ("1", "b")},
        ),
        form("strided", "cumsum %a dim 1", "b x s x T", strides={0: ("2*s", "2"), 1: ("3*s", "3")}),
        form("across", "cumsum %a dim 1", "b x s x 5 x T", strides={1: ("5*s", "1", "s")}),
        # few long rows: several threads or blocks share one
        form(
            "long", "cumsum %a dim 1 exclusive", "b x s x T",
            types=("f16", "f32", "i32"), envs=LONG, few=LONG, offset=3, both=True,
        ),
    ),
    PARTIAL_SUMS,
    "b = 0 to 64, s = 0 to 100000",
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 1537}),
    ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 300}),
    (*FLOATS, *INTEGERS),
)  # fmt: skip

SPECS = (CUMSUM,)
