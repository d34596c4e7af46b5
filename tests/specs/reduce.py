"""Reductions over any dims, argmax and topk."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Form, Spec, form
from tests.specs.tolerance import BITS, SUMS

DIMS = "b = 0 to 64, s = 0 to 3000"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 1537})
FEW = (*ENVS[:4], {"b": 2, "s": 131})
LONG = [{"b": 2, "s": 1537}]
SPECIAL = {"b": 7, "s": 5}
KINDS = ("sum", "mean", "max", "min", "var")
"""The kinds that have templates of their own; a product differs from a sum in two functions."""


def reduce(kind: str, name: str, shape: str, *axes: int, correction: str = "", **options: object) -> Form:
    left = "".join(f"{d} x " for i, d in enumerate(shape.split(" x ")) if i not in axes)
    text = f"reduce {kind} %a dims {[*axes]} {correction}".rstrip()
    return form(f"{name}-{kind}", text, f"{shape} x T", to=f"{left}T", **options)


def forms(kind: str) -> list[Form]:
    both = (*FLOATS, *INTEGERS) if kind in ("sum", "max", "min") else FLOATS
    booleans = (*both, "i1") if kind in ("max", "min") else both
    return [
        reduce(kind, "last", "b x s", 1, few=(*FEW, ENVS[-1])),
        reduce(kind, "static", "b x s x 24", 2),
        reduce(kind, "first", "s x b x 3", 0),
        reduce(kind, "middle", "b x s x 9", 1, types=booleans),
        reduce(kind, "two", "b x s x 24", 1, 2, types=booleans),
        reduce(kind, "apart", "b x 3 x s", 0, 2),
        reduce(kind, "outer-two", "b x s x 40", 0, 1, few=(*FEW, ENVS[-1])),
        reduce(kind, "all", "b x s", 0, 1),
        reduce(kind, "view", "b x s", 1, strides={0: ("s + 8", "1"), 1: ("3",)}, offset=1),
        reduce(kind, "turned", "b x s", 1, strides={0: ("1", "b"), 1: ("2",)}),
        reduce(kind, "strided", "b x s", 1, strides={0: ("2*s", "2"), 1: ("1",)}),
        reduce(kind, "none", "b x s", types=("f32",)),
    ]


WIDE = "b x 140001"
SHORT, SHORT_ENVS = "b x s x 8192", ({"b": 2, "s": 49}, {"b": 2, "s": 7}, {"b": 3, "s": 200})
REDUCE = Spec(
    "reduce",
    (
        *(f for kind in KINDS for f in forms(kind)),
        reduce("prod", "last", "b x s", 1, types=(*FLOATS, *INTEGERS), envs=FEW),
        reduce("prod", "first", "s x b x 3", 0, types=(*FLOATS, "i32"), envs=FEW),
        reduce("var", "unbiased", "b x s", 1, correction="correction 1"),
        # few long rows: on a GPU several blocks share one
        reduce("sum", "long", WIDE, 1, types=("f16", "i32"), envs=LONG, few=LONG),
        reduce("max", "long", WIDE, 1, types=("bf16",), envs=LONG, few=LONG, offset=3),
        reduce("var", "long", WIDE, 1, types=("f32",), envs=LONG, few=LONG),
        # many short columns: on a GPU few warps share one
        reduce("mean", "short", SHORT, 1, types=("f16", "f32"), envs=SHORT_ENVS, few=SHORT_ENVS[:1]),
        reduce("max", "short", SHORT, 1, types=("bf16",), envs=SHORT_ENVS, few=SHORT_ENVS[:1]),
        reduce("var", "short", SHORT, 1, types=("f32",), envs=SHORT_ENVS, few=SHORT_ENVS[:1]),
    ),
    SUMS, DIMS, ENVS, FEW, special=SPECIAL,
)  # fmt: skip

SELECT_DIMS = "b = 0 to 64, s = 3 to 3000"
SELECT_ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 3}, {"b": 0, "s": 4}, {"b": 2, "s": 1537})
SELECT_FEW = ({"b": 3, "s": 5}, {"b": 1, "s": 3}, {"b": 2, "s": 300})
TWO = ({"b": 1, "s": 3}, {"b": 2, "s": 3})
JUMPS = "it would jump where two elements are nearly equal"
ARGMAX = Spec(
    "argmax",
    (
        form("last", "argmax %a dim 1", "b x s x T", to="b x i64"),
        form("middle", "argmax %a dim 1", "b x s x 5 x T", to="b x 5 x i32"),
        form("vector", "argmax %a dim 0", "s x T", to="i64"),
        form("smallest", "argmax %a dim 1 smallest", "b x s x T", to="b x i64"),
    ),
    BITS, SELECT_DIMS, SELECT_ENVS, SELECT_FEW, (*FLOATS, *INTEGERS), SPECIAL, {"graphs": JUMPS},
)  # fmt: skip
TOPK = Spec(
    "topk",
    (
        form("three", "topk %a k 3", "b x s x T", to=("b x 3 x T", "b x 3 x i64")),
        form("smallest", "topk %a k 3 smallest", "b x s x T", to=("b x 3 x T", "b x 3 x i64")),
        form("first", "topk %a k 3 dim 0", "s x b x T", to=("3 x b x T", "3 x b x i32"), types=("f16", "i32")),
        form("one", "topk %a k 1", "s x T", to=("1 x T", "1 x i32")),
        form(
            "view", "topk %a k 2", "b x s x T", to=("b x 2 x T", "b x 2 x i64"),
            strides={0: ("1", "b"), 1: ("1", "b"), 2: ("5", "2")},
        ),
        form("half", "topk %a k 50", "b x 100 x T", to=("b x 50 x T", "b x 50 x i64"), types=("f16", "f32")),
        form("few", "topk %a k 5 smallest", "b x 900 x T", to=("b x 5 x T", "b x 5 x i64"), types=("bf16", "f32"), both=True),
        # selected in parts, once and twice
        form("long", "topk %a k 20", "b x 20001 x T", to=("b x 20 x T", "b x 20 x i64"), types=("f16", "i64"), envs=TWO, few=TWO, both=True),
        form(
            "many", "topk %a k 1800 smallest", "b x 40000 x T", to=("b x 1800 x T", "b x 1800 x i32"), types=("i8", "f32"), envs=TWO[:1],
            few=TWO[:1], both=True,
        ),
    ),
    BITS, SELECT_DIMS, SELECT_ENVS, SELECT_FEW, (*FLOATS, *INTEGERS), SPECIAL, {"graphs": JUMPS},
)  # fmt: skip

SPECS = (REDUCE, ARGMAX, TOPK)
