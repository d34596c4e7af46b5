"""Softmax and norms: along any dim, with factors and prologues, strided, with rows of any length."""

from __future__ import annotations

from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import ROWS

DIMS = "b = 0 to 64, s = 0 to 3000, num = 1 to 2139095039 hints [925353388] given"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 1537})
FEW = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 131})
PROLOGUE_ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 2, "s": 131})

GIVEN_ENVS = ({"b": 3, "s": 5, "num": 925353388}, {"b": 2, "s": 7, "num": 1056964608})
"""An epsilon of 1e-5 and one of 0.5, as bits."""


def given(op: str, text: str, shape: str, *factors: str) -> Form:
    """A norm whose epsilon the run is given."""
    without = {"graphs": "random sizes are bits of numbers next to 0"}
    options = {"envs": GIVEN_ENVS, "few": GIVEN_ENVS, "without": without}
    return form("given", f"{op} %a {text} eps bits(num)", f"{shape} x T", *factors, **options)


SOFTMAX = Spec(
    "softmax",
    (
        form("last", "softmax %a dim 1", "b x s x T"),
        form("vector", "softmax %a dim 0", "s x T"),
        form("middle", "softmax %a dim 1", "b x s x 9 x T"),
        form("first", "softmax %a dim 0", "s x b x T"),
        form("one", "softmax %a dim 1", "b x s x 1 x T"),
        form(
            "view", "softmax %a dim 1", "b x s x T",
            strides={0: ("s + 8", "1"), 1: ("2*s", "1")}, offset=1,
        ),
    ),
    ROWS, DIMS, ENVS, FEW,
)  # fmt: skip


def norm(op: str, name: str, shape: str, axes: int, factors: str = "scale %b bias %c", **options: object) -> Form:
    row = " x ".join(shape.split(" x ")[-axes:])
    vectors = [f"{row} x T"] * factors.count("%")
    return form(name, " ".join(f"{op} %a {factors} axes {axes} eps 1e-05".split()), f"{shape} x T", *vectors, **options)


def summed(op: str, name: str, operand: str, axes: int, **options: object) -> Form:
    """norm(a + 2 d), and the sum kept."""
    row = {1: "24", 2: "s x 24"}[axes]
    text = (
        f"{op} %a scale %b bias %c axes {axes} eps 1e-05 prologue(%d) {{\n  ^bb0(%x_in: S, %d_in: S):\n"
        "    %k_ = ait.constant 2.0 : S\n    %m_ = ait.mul %d_in, %k_ : S\n    %n_ = ait.add %x_in, %m_ : S\n"
        "    ait.yield %n_, %n_ : S, S\n  }"
    )
    tensor = "b x s x 24 x T"
    types = (f"{row} x T", f"{row} x T", f"{operand} x T")
    return form(name, text, tensor, *types, to=(tensor, tensor), envs=PROLOGUE_ENVS, few=PROLOGUE_ENVS, **options)


def finished(op: str, name: str, operand: str, shape: str = "b x s x 24", axes: int = 1, **options: object) -> Form:
    """sigmoid(norm(a)) * d."""
    row = " x ".join(shape.split(" x ")[-axes:])
    text = (
        f"{op} %a scale %b axes {axes} eps 1e-05 epilogue(%c) {{\n  ^bb0(%acc_: S, %d_in: S):\n"
        "    %m_ = ait.sigmoid %acc_ : S\n    %n_ = ait.mul %m_, %d_in : S\n    ait.yield %n_ : S\n  }"
    )
    return form(name, text, f"{shape} x T", f"{row} x T", f"{operand} x T", **options)


LAYER_NORM = Spec(
    "layer_norm",
    (
        norm("layer_norm", "both", "b x s x 24", 1),
        norm("layer_norm", "dynamic", "b x s", 1),
        norm("layer_norm", "two-axes", "b x s x 6", 2),
        norm("layer_norm", "all-axes", "s x 6", 2),
        norm("layer_norm", "scale", "b x 77", 1, "scale %b"),
        norm("layer_norm", "bias", "b x 77", 1, "bias %b"),
        norm("layer_norm", "plain", "b x 77", 1, ""),
        given("layer_norm", "scale %b axes 1", "b x s x 24", "24 x T"),
        norm(
            "layer_norm", "view", "b x s x 24", 1,
            strides={0: ("s*40", "40", "1"), 3: ("s*24", "24", "1")}, offset=1,
        ),
        summed("layer_norm", "residual", "b x s x 24", 1),
        summed("layer_norm", "row-bias", "24", 1),
        summed("layer_norm", "column", "s x 1", 1),
        summed("layer_norm", "two-axes-residual", "b x s x 24", 2),
        summed("layer_norm", "two-axes-broadcast", "24", 2),
        summed("layer_norm", "two-axes-column", "b x s x 1", 2, offset=1),
        finished("layer_norm", "gate", "b x s x 24"),
        finished("layer_norm", "batch-gate", "b x 1 x 24"),
        finished("layer_norm", "column-gate", "b x s x 1", offset=1),
        finished("layer_norm", "long-gate", "b x s", "b x s"),
        finished("layer_norm", "two-axes-gate", "s x 6", "b x s x 6", 2),
        finished(
            "layer_norm", "view-gate", "b x s x 24",
            strides={0: ("s*40", "40", "1"), 2: ("s*32", "32", "1"), 3: ("s*48", "48", "1")},
        ),
    ),
    ROWS, DIMS, ENVS, FEW,
)  # fmt: skip
RMS_NORM = Spec(
    "rms_norm",
    (
        norm("rms_norm", "scale", "b x s x 24", 1, "scale %b"),
        norm("rms_norm", "dynamic", "b x s", 1, "scale %b"),
        norm("rms_norm", "two-axes", "b x s x 6", 2),
        norm("rms_norm", "plain", "b x 77", 1, ""),
        form("bounded", "rms_norm %a scale %b axes 1 eps 0.5 bounded", "b x s x 24 x T", "24 x T"),
        given("rms_norm", "axes 1", "b x s"),
        summed("rms_norm", "residual", "b x s x 24", 1),
        summed("rms_norm", "two-axes-residual", "24", 2),
        finished("rms_norm", "gate", "b x s x 77", "b x s x 77"),
    ),
    ROWS, DIMS, ENVS, FEW,
)  # fmt: skip

LAST, FIRST = "b x s x 3 x 12 x T", "b x 12 x s x T"
SILU = (
    "epilogue(%d) {\n  ^bb0(%acc_: S, %d_in: S):\n    %m_ = ait.silu %acc_ : S\n    %n_ = ait.add %m_, %d_in : S\n"
    "    ait.yield %n_ : S\n  }"
)
BOTH = "scale %b bias %c"
GROUP_NORM = Spec(
    "group_norm",
    (
        form("last", f"group_norm %a {BOTH} dim 3 groups 4 eps 1e-05", LAST, "12 x T", "12 x T"),
        form("first", f"group_norm %a {BOTH} dim 1 groups 3 eps 1e-05", FIRST, "12 x T", "12 x T"),
        form("instance", "group_norm %a dim 1 groups 12 eps 1e-05", FIRST),
        form("one", "group_norm %a scale %b dim 2 groups 1 eps 1e-03", "b x s x 12 x T", "12 x T"),
        form("rows", "group_norm %a bias %b dim 1 groups 4 eps 1e-05", "b x 12 x T", "12 x T"),
        given("group_norm", "dim 3 groups 4", LAST.removesuffix(" x T")),
        form("silu-last", f"group_norm %a {BOTH} dim 3 groups 4 eps 1e-05 {SILU}", LAST, "12 x T", "12 x T", LAST),
        form("silu-first", f"group_norm %a {BOTH} dim 1 groups 2 eps 1e-05 {SILU}", FIRST, "12 x T", "12 x T", "s x T", to=FIRST),
        form(
            "view", f"group_norm %a {BOTH} dim 1 groups 3 eps 1e-05", FIRST, "12 x T", "12 x T",
            strides={0: ("s*30", "2*s + 1", "2"), 3: ("12*s", "1", "12")}, offset=1,
        ),
    ),
    ROWS, DIMS, ENVS, FEW,
)  # fmt: skip

SPECS = (SOFTMAX, LAYER_NORM, RMS_NORM, GROUP_NORM)
