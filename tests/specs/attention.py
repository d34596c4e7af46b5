"""Attention: masks that broadcast, causal, windows, heads in groups, k and v in two pieces, q, k
and v read in place.
"""

from __future__ import annotations

from tests.specs.scores import scores_of
from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import ATTENTION as CLOSE
from tests.specs.tolerance import QUANTISED_ATTENTION as QUANTISED

DIMS = "b = 0 to 4, s = 0 to 400, l = 0 to 400, d = 1 to 80, num = 1 to 2139095039 hints [1040187392] given"
ENVS = (
    {"b": 2, "s": 37, "l": 70, "d": 24},
    {"b": 1, "s": 1, "l": 1, "d": 1},
    {"b": 1, "s": 130, "l": 300, "d": 64},
    {"b": 2, "s": 64, "l": 64, "d": 16},
    {"b": 0, "s": 5, "l": 7, "d": 8},
    {"b": 1, "s": 0, "l": 7, "d": 8},
)
FEW = (*ENVS[:2], ENVS[5])
# more than a step of rows and columns; rows that see no column
WINDOWS = (
    *ENVS[:4],
    {"b": 1, "s": 400, "l": 400, "d": 8},
    {"b": 1, "s": 3, "l": 333, "d": 16},
    {"b": 1, "s": 300, "l": 20, "d": 16},
)
FEW_WINDOWS = (*ENVS[:2], {"b": 1, "s": 3, "l": 133, "d": 16}, {"b": 1, "s": 70, "l": 2, "d": 8})
BLIND = ({"b": 2, "s": 9, "l": 1, "d": 8}, {"b": 2, "s": 37, "l": 2, "d": 24}, {"b": 1, "s": 5, "l": 0, "d": 8})
"""Sizes for which some rows see no column."""
# also with more rows than columns
TOP_LEFT = (*ENVS, {"b": 1, "s": 300, "l": 130, "d": 16}, {"b": 2, "s": 70, "l": 1, "d": 8})
FEW_TOP_LEFT = (*FEW, {"b": 2, "s": 9, "l": 4, "d": 8})
# for heads of hundreds of columns
DEEP = ({"b": 1, "s": 3, "l": 35, "d": 5}, {"b": 1, "s": 1, "l": 0, "d": 1}, {"b": 2, "s": 37, "l": 70, "d": 24})
# The first piece is contiguous, as a cache is, the second is part of a product with heads along its rows.
PIECES = {3: ("9*s*d", "d", "9*d", "1"), 4: ("9*s*d", "d", "9*d", "1"), 6: ("3*s*d", "d", "3*d", "1")}
PRODUCT = {
    0: ("9*s*d", "d", "9*d", "1"),
    1: ("9*l*d", "d", "9*d", "1"),
    2: ("9*l*d", "d", "9*d", "1"),
    4: ("3*s*d", "d", "3*d", "1"),
}


GIVEN = ({"b": 2, "s": 9, "l": 21, "d": 8, "num": 1048576000}, {"b": 1, "s": 33, "l": 40, "d": 16, "num": 1040187392})
"""Scales of 0.25 and 0.125, as bits."""
GIVEN_RAGGED = tuple(env | {"s": 8 + env["s"]} for env in GIVEN)
NOT_RANDOM = {"graphs": "random sizes are bits of numbers next to 0"}


def attention(
    name: str,
    flags: str = "",
    mask: str = "",
    then: str = "",
    heads: int = 3,
    width: str = "d",
    depth: str = "d",
    scores: str = "",
    scale: float | str = 0.25,
    element: str = "T",
    **options: object,
) -> Form:
    """`element` is the type of q, k and v, `then` is the number of rows of a second piece of k and v, `mask` the type of a mask; `scores` changes the
    scores.
    """
    operands = [f"b x {heads} x s x {depth}", f"b x 3 x l x {depth}", f"b x 3 x l x {width}"]
    operands = [f"{dims} x {element}" for dims in operands]
    names = "defghij"
    text = "attention %a, %b, %c"
    if then:
        text += " then %d, %e"
        operands += [f"b x 3 x {then} x {depth} x T", f"b x 3 x {then} x {width} x T"]
    if mask:
        text += f" mask %{names[len(operands) - 3]}"
        operands.append(mask)
    if "window" in flags:
        options = {"envs": WINDOWS, "few": FEW_WINDOWS} | options
    text = f"{text} scale {scale} {flags}".rstrip()
    quantised = "result_scale" in flags or "largest" in flags
    results = [f"b x {heads} x s x {width} x {'f8E4M3FN' if quantised else 'T'}"]
    results += [*([f"b x {heads} x s x S"] * ("log_sums" in flags)), *([f"b x {heads} x s x f32"] * ("largest" in flags))]
    if scores:
        what = scores_of(scores, heads, f"(l + {then})" if then else "l")
        text += what.text([f"%{names[len(operands) - 3 + i]}" for i in range(len(what.operands))])
        operands += what.operands
    return form(name, text, *operands, to=results, **options)


def both(name: str, *args: object, flags: str = "", **options: object) -> list[Form]:
    """As it is, and causal."""
    return [
        attention(f"{name}plain", flags, **options),  # type: ignore[arg-type]
        attention(f"{name}causal", f"causal {flags}".rstrip(), **options),  # type: ignore[arg-type]
    ]


ATTENTION = Spec(
    "attention",
    (
        *both(""),
        *both("mask-", mask="b x 1 x 1 x l x T"),
        *both("groups-", heads=6),
        *both("window-1-", flags="window 1", envs=ENVS, few=FEW),
        *both("window-50-", flags="window 50", mask="b x 1 x 1 x l x T"),
        *both("full-mask-", mask="b x 3 x s x l x T"),
        *both("pieces-", then="s", heads=6),
        *both("pieces-window-", flags="window 50", then="3", mask="b x 1 x 1 x (l + 3) x T"),
        attention("pieces-strides", "causal", "s + l x T", "s", offset=1, strides=PIECES),
        attention("head-mask", mask="3 x s x 1 x S"),
        *both("bias-", scores="bias"),
        attention("biases", "log_sums", scores="biases", heads=6),
        attention("alibi", "causal log_sums", scores="alibi"),
        attention("cap-mask", "window 50", mask="b x 1 x 1 x l x T", scores="cap", heads=6),
        attention("groups", scores="groups"),
        attention("choice", scores="choice"),
        *both("hidden-", scores="hidden", envs=BLIND, few=BLIND),
        *both("nan-rows-", flags="log_sums nan_rows", scores="hidden", envs=BLIND, few=BLIND),
        *both("least-", scores="least", envs=BLIND, few=BLIND),
        attention("pieces-bias", "causal log_sums", then="s", scores="bias"),
        attention("top-left", "causal top_left log_sums", envs=TOP_LEFT, few=FEW_TOP_LEFT),
        attention("top-left-window", "top_left window 50", envs=WINDOWS, few=FEW_WINDOWS),
        attention("log-sums", "log_sums", mask="3 x s x 1 x S"),
        attention("weights", "no_softmax"),
        attention("weights-bias", "causal no_softmax", scores="bias", heads=6),
        attention("weights-top-left", "causal top_left no_softmax", scores="cap", envs=TOP_LEFT, few=FEW_TOP_LEFT),
        attention("weights-window", "window 50 no_softmax", scores="groups"),
        attention("weights-pieces", "no_softmax", then="s", scores="choice"),
        attention("negative", scale=-0.25),
        attention("given", "causal", scale="bits(num)", envs=GIVEN, few=GIVEN, without=NOT_RANDOM),
        attention("given-mask", mask="l x T", scale="bits(num)", envs=GIVEN, few=GIVEN, without=NOT_RANDOM),
        attention("widths", width="40"),
        attention("deep", "causal log_sums", "l x T", width="d", depth="300", envs=DEEP, few=DEEP[:2]),
        attention("deep-wide", width="521", depth="260", then="s", envs=DEEP, few=DEEP[:2]),
        attention("qkv", mask="l x T", offset=1, strides=PRODUCT),
    ),
    CLOSE, DIMS, ENVS, FEW,
)  # fmt: skip

NUMBERS = Spec(
    "attention",
    (
        attention("one-scale", "causal result_scale 0.0078125", heads=6),
        attention("row-scales", "largest 448.0 least 1e-30", mask="b x 1 x 1 x l x T"),
        attention("row-scales-log-sums", "causal log_sums largest 448.0 least 1e-30", scores="bias", offset=1),
        attention("row-scales-blind", "nan_rows largest 448.0 least 1e-30", scores="hidden", envs=BLIND, few=BLIND),
        attention("row-scales-view", "largest 448.0 least 1e-30", strides={3: ("3*s*d", "d", "3*d", "1"), 4: ("3*s", "1", "3")}),
    ),
    QUANTISED, DIMS, ENVS, FEW, ("f16", "bf16", "f32"),
    without={"cpu": "a CPU has no kernel for it, and no pass makes it there", "graphs": "it jumps where a quotient is nearly a tie"},
)  # fmt: skip
"""Results of 8 bits with a scale."""

FLOAT8 = Spec(
    "attention",
    (
        attention("float8", "causal value_scale 0.5", heads=6, element="f8E4M3FN"),
        attention("float8-mask", "log_sums", mask="b x 1 x 1 x l x T", element="f8E4M3FN", offset=1),
        attention("float8-window", "window 50", scores="cap", element="f8E4M3FN"),
        attention("float8-blind", "nan_rows value_scale 2.0", scores="hidden", envs=BLIND, few=BLIND, element="f8E4M3FN"),
        attention("float8-weights", "no_softmax value_scale 0.125", element="f8E4M3FN"),
        attention("float8-row-scales", "value_scale 2.0 largest 448.0 least 1e-30", element="f8E4M3FN"),
    ),
    QUANTISED, DIMS, ENVS, FEW, ("f16", "bf16", "f32"),
    without={"cpu": "a CPU has no kernel for it, and no pass makes it there", "graphs": "it jumps where a quotient is nearly a tie"},
)  # fmt: skip
"""q, k and v of 8-bit floats, on plain arithmetic."""

RAGGED_DIMS = "b = 0 to 4, s = 8 to 400, l = 8 to 400, d = 1 to 80, num = 1 to 2139095039 hints [1040187392] given"
RAGGED_ENVS = (
    {"b": 2, "s": 37, "l": 70, "d": 24},
    {"b": 1, "s": 8, "l": 8, "d": 1},
    {"b": 4, "s": 130, "l": 300, "d": 64},
    {"b": 0, "s": 8, "l": 9, "d": 4},
)
DEEP_RAGGED = ({"b": 2, "s": 9, "l": 11, "d": 5}, {"b": 0, "s": 8, "l": 9, "d": 4})
FEW_RAGGED = ({"b": 2, "s": 9, "l": 11, "d": 5}, {"b": 1, "s": 33, "l": 40, "d": 8}, RAGGED_ENVS[3])


def ragged(
    name: str, flags: str, heads: int = 3, depth: str = "d", scale: float | str = 0.25, **options: object
) -> Form:
    """Padded: lengths of keys, and of queries."""
    q, kv = f"b x {heads} x s x {depth} x T", f"b x 3 x l x {depth} x T"
    text = f"ragged_attention %a, %b, %c columns %d rows %e scale {scale} {flags}".rstrip()
    return form(name, text, q, kv, kv, "b x i32", "b x i32", to=q, below={3: 9, 4: 8}, **options)


def packed(name: str, flags: str, heads: int, longest: int, depth: str = "d") -> Form:
    """Rows of all sequences one after the other, as a product with heads along its rows gives them."""
    q, kv = f"1 x {heads} x l x {depth} x T", f"1 x 3 x l x {depth} x T"
    strides = {
        0: (f"{heads}*l*{depth}", depth, f"{heads}*{depth}", "1"),
        1: (f"9*l*{depth}", depth, f"9*{depth}", "1"),
        2: (f"9*l*{depth}", depth, f"9*{depth}", "1"),
    }
    text = f"ragged_attention %a, %b, %c segments %d scale 0.25 {flags}".rstrip()
    options = {"offsets": {3: ("l", longest)}, "strides": strides, "offset": int(depth == "d")}
    return form(name, text, q, kv, kv, "(b + 1) x i64", to=q, **options)


def paged(name: str, flags: str, heads: int, depth: str = "d", **options: object) -> Form:
    """A pool of 6 pages of 5 rows, up to 3 of them for a sequence."""
    q, kv = f"b x {heads} x 3 x {depth} x T", f"6 x 3 x 5 x {depth} x T"
    text = f"ragged_attention %a, %b, %c columns %d pages %e scale 0.25 {flags}".rstrip()
    operands = (q, kv, kv, "b x i64", "b x 3 x i64")
    return form(name, text, *operands, to=q, below={3: 16, 4: 6}, **options)


RAGGED = Spec(
    "ragged_attention",
    (
        ragged("padded", ""),
        ragged("padded-causal", "causal", heads=6),
        ragged("padded-given", "causal", scale="bits(num)", envs=GIVEN_RAGGED, few=GIVEN_RAGGED),
        ragged("padded-window", "window 2"),
        ragged("padded-deep", "causal", depth="260", envs=DEEP_RAGGED, few=DEEP_RAGGED),
        ragged("padded-wide", "causal window 20", depth="192", heads=6),
        packed("packed-causal", "causal", 3, 90),
        packed("packed-even", "causal", 6, 90, depth="64"),
        packed("packed-groups", "window 3", 6, 40),
        paged("paged-causal", "causal", 6),
        paged("paged-even", "causal", 3, depth="80"),
        paged("paged-strides", "", 3, strides={1: ("15*d", "d", "3*d", "1"), 2: ("15*d", "d", "3*d", "1")}),
    ),
    CLOSE, RAGGED_DIMS, RAGGED_ENVS, FEW_RAGGED,
    without={"graphs": "lengths, pages and offsets must fit, which random inputs do not"},
)  # fmt: skip

SPECS = (ATTENTION, NUMBERS, FLOAT8, RAGGED)
