"""Cumulative sums, products, extremes along any dim."""

from __future__ import annotations

from tests.specs.spec import FLOATS, INTEGERS, Form, Spec, form
from tests.specs.tolerance import PARTIAL_SUMS

LONG = [{"b": 2, "s": 70001}]
ALL = (*FLOATS, *INTEGERS)
DIMS = "b = 0 to 64, s = 0 to 100000"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 1537})
FEW = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 300})
SOME, SOME_FEW = (ENVS[0], ENVS[2], ENVS[-1]), (FEW[0], FEW[-1])


def others(kind: str, both: tuple[str, ...], long: tuple[str, ...]) -> tuple[Form, ...]:
    """Forms of a kind that differ from sums in what a template starts from and how it joins."""
    short = (FEW[0], {"b": 2, "s": 90})  # parts of a longer product would overflow before the whole does
    envs = {"envs": short, "few": short} if kind == "prod" else {"envs": SOME, "few": SOME_FEW}
    return (
        form(f"{kind}-last", f"cumulative {kind} %a dim 1", "b x s x T", types=both, **envs),
        form(f"{kind}-middle", f"cumulative {kind} %a dim 1 exclusive", "b x s x 9 x T", types=both, **envs),
        form(f"{kind}-wide", f"cumulative {kind} %a dim 0 reverse", "s x 264 x T", types=both[-1:], **envs),
        form(
            f"{kind}-long",
            f"cumulative {kind} %a dim 1 exclusive",
            "b x s x T",
            types=long,
            envs=LONG,
            few=LONG,
            offset=3,
        ),
    )


CUMULATIVE = Spec(
    "cumulative",
    (
        form("last", "cumulative sum %a dim 1", "b x s x T"),
        form("last-both", "cumulative sum %a dim 1 exclusive reverse", "b x s x T"),
        form("middle", "cumulative sum %a dim 1", "b x s x 9 x T"),
        form("middle-reverse", "cumulative sum %a dim 1 reverse", "b x s x 9 x T"),
        form("first-exclusive", "cumulative sum %a dim 0 exclusive", "s x b x 3 x T"),
        form("wide", "cumulative sum %a dim 0", "s x 264 x T"),
        form("wide-words", "cumulative sum %a dim 0 exclusive", "s x 264 x T", types=("f16", "f32"), both=True),
        form("vector", "cumulative sum %a dim 0", "s x T"),
        form("short", "cumulative sum %a dim 2", "b x s x 16 x T"),
        form("short-odd", "cumulative sum %a dim 2 exclusive reverse", "b x s x 9 x T"),
        form("single", "cumulative sum %a dim 2", "b x s x 3 x T", types=("f16",)),
        form("one", "cumulative sum %a dim 1", "b x s x 1 x T"),
        form("view", "cumulative sum %a dim 1", "b x s x T", strides={0: ("s + 3", "1")}, offset=1),
        form(
            "turned", "cumulative sum %a dim 1 reverse", "b x s x T",
            strides={0: ("1", "b"), 1: ("1", "b")},
        ),
        form("strided", "cumulative sum %a dim 1", "b x s x T", strides={0: ("2*s", "2"), 1: ("3*s", "3")}),
        form("across", "cumulative sum %a dim 1", "b x s x 5 x T", strides={1: ("5*s", "1", "s")}),
        # few long rows: several threads or blocks share one
        form("long", "cumulative sum %a dim 1 exclusive", "b x s x T", types=("f16", "f32", "i32"), envs=LONG, few=LONG, offset=3, both=True),
        *others("prod", ALL, ("i32",)),
        *others("logsumexp", FLOATS, ("f32",)),
        *others("max", ALL, ("bf16",)),
        *others("min", ALL, ("i32",)),
    ),
    PARTIAL_SUMS, DIMS, ENVS, FEW, ALL,
)  # fmt: skip

SPECS = (CUMULATIVE,)
