"""Elementwise ops: each on every element type it takes, and fused ones over broadcasts, strides and several results."""

from __future__ import annotations

from ait_mlir.dialects.ait.elementwise import BINARY, PREDICATES, UNARY
from tests.specs.spec import FLOATS, INTEGERS, STORED, Form, Spec, form
from tests.specs.tolerance import BITS, MAPS, ROUNDED, Tolerance

N = "n = 0 to 100000"
ENVS = ({"n": 1}, {"n": 7}, {"n": 4099})
FEW = ({"n": 1}, {"n": 7}, {"n": 1031})
SPECIAL = {"n": 16}

POWERS = Tolerance(dict.fromkeys(FLOATS, 4.0), MAPS.floor)

OUTSIDE = "most numbers are outside of its domain, and little is left to compare"
POLES = "near a pole it turns the last bits of a sum into all"
UNARY_NOT_IN_GRAPHS = {
    "ait.floor": "it jumps where a sum is nearly whole",
    "ait.round": "it jumps where a sum is nearly a half",
    **dict.fromkeys(("ait.asin", "ait.acos", "ait.acosh", "ait.atanh", "ait.erfinv"), OUTSIDE),
    **dict.fromkeys(("ait.lgamma", "ait.digamma", "ait.tan"), POLES),
}
UNARY_SPECS = [
    Spec(
        op.name.removeprefix("ait."),
        (form("", f"{op.name.removeprefix('ait.')} %a", "n x T"),),
        MAPS, N, ENVS, FEW, FLOATS if op.FLOATS_ONLY else (*FLOATS, *INTEGERS), SPECIAL,
        without={"graphs": UNARY_NOT_IN_GRAPHS[op.name]} if op.name in UNARY_NOT_IN_GRAPHS else {},
    )
    for op in UNARY
]  # fmt: skip
NOT_IN_GRAPHS = {
    "ait.pow": "a negative number to any power is NaN, and little is left to compare",
    "ait.rem": "it jumps where a quotient is nearly whole",
    "ait.atan2": "it jumps where the left one is nearly 0",
}
CLOSE = {"ait.pow": POWERS, "ait.atan2": MAPS, "ait.hypot": MAPS}
BINARY_SPECS = [
    Spec(
        op.name.removeprefix("ait."),
        (form("", f"{op.name.removeprefix('ait.')} %a, %b", "n x 3 x T", "3 x T"),),
        CLOSE.get(op.name, ROUNDED),
        N, ENVS, FEW, FLOATS if op.FLOATS_ONLY else INTEGERS if op.INTEGERS_ONLY else (*FLOATS, *INTEGERS), SPECIAL,
        without={"graphs": NOT_IN_GRAPHS[op.name]} if op.name in NOT_IN_GRAPHS else {},
    )
    for op in BINARY
]  # fmt: skip
CLAMP = Spec(
    "clamp",
    (
        form("both", "clamp %a min -0.5 max 0.1", "n x T", types=FLOATS),
        form("low", "clamp %a min 0.25", "n x T", types=FLOATS),
        form("high", "clamp %a max 2", "n x T", types=(*FLOATS, *INTEGERS)),
        form("crossed", "clamp %a min 7 max 2", "n x T", types=(*FLOATS, *INTEGERS)),
        form("infinite", "clamp %a min -inf max 0.0", "n x T", types=("f16", "f32")),
        form("integers", "clamp %a min -3 max 5", "n x T", types=("i8", "i32", "i64")),
    ),
    BITS, N, ENVS, FEW, (*FLOATS, *INTEGERS), SPECIAL,
)  # fmt: skip
COMPARE = Spec(
    "compare",
    tuple(form(p, f"compare {p} %a, %b", "n x 3 x T", "3 x T", to="n x 3 x i1") for p in PREDICATES),
    BITS, N, ENVS, FEW, ("f16", "f32", "i32"), SPECIAL,
    without={"graphs": "the generator compares and chooses at once: comparisons of what is nearly equal differ"},
)  # fmt: skip
WHERE = Spec(
    "where",
    (
        form("", "where %a, %b, %c", "n x 1 x i1", "n x 5 x T", "T", to="n x 5 x T"),
        form("rows", "where %a, %b, %c", "n x 24 x i1", "24 x T", "n x 24 x T", to="n x 24 x T"),
    ),
    BITS, N, ({"n": 4}, {"n": 0}, {"n": 1031}), FEW, (*FLOATS, *INTEGERS), SPECIAL,
)  # fmt: skip
TYPES = (*FLOATS, "i1", *INTEGERS)
BITCAST = Spec(
    "bitcast",
    tuple(
        form(f"{given}-{made}", "bitcast %a", f"n x 3 x {given}", to=f"n x 3 x {made}", types=(given,))
        for given, made in (("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("i64", "f64"))
    ),
    BITS, N, ENVS, FEW, ("f32", "f64", "i32", "i64"),
    without={"graphs": "it jumps where a number is nearly 0"},
)  # fmt: skip
COARSE = frozenset({"graphs"})
"""Neighbours are so far apart that what is nearly equal rounds to what is not."""
CAST = Spec(
    "cast",
    (
        *(form(f"to-{t}", "cast %a", "n x T", to=f"n x {t}") for t in ("i1", *INTEGERS, *FLOATS)),
        *(
            form(f"to-{t}", "cast %a", "n x T", to=f"n x {t}", types=("f32", "f64", "bf16", "i32"), without=COARSE)
            for t in STORED
        ),
        *(form(f"stored-{t}", "cast %a", "n x T", to=f"n x {t}", types=STORED) for t in ("f32", "bf16", "i8", "i1")),
    ),
    ROUNDED, N, ENVS, FEW, TYPES, SPECIAL,
)  # fmt: skip


def total(name: str, *shapes: str, to: str, **options: object) -> Form:
    """r = a + b + ... + 0.5 and fast_gelu(r), over operands of these shapes."""
    names = "abcdefg"[: len(shapes)]
    arguments = ", ".join(f"%{c}_in: S" for c in names)
    lines = ["%t_0 = ait.constant 0.5 : S"]
    lines += [f"%t_{i + 1} = ait.add %t_{i}, %{c}_in : S" for i, c in enumerate(names)]
    last = f"%t_{len(shapes)}"
    lines += [f"%g_out = ait.fast_gelu {last} : S", f"ait.yield {last}, %g_out : S, S"]
    body = "".join(f"    {line}\n" for line in lines)
    text = f"fused_elementwise({', '.join(f'%{c}' for c in names)}) {{\n  ^bb0({arguments}):\n{body}  }}"
    operands = [f"{s} x T" if s else "T" for s in shapes]
    result = f"{to} x T" if to else "T"
    return form(name, text, *operands, to=(result, result), **options)


def rotations() -> Form:
    """Query and key rotated by the same angles, as one: halves of heads that are parts of one product, written into
    the halves of others; the positions are the factor of one element a row."""
    half, angle, position = "b x s x 2 x 16 x T", "b x s x 1 x 16 x T", "b x s x 1 x 1 x i64"
    body: list[str] = []
    for x, parts in (("q", "ab"), ("k", "cd")):
        for i, sign in ((0, "sub"), (1, "add")):
            first, second = f"%{parts[i]}_in", f"%{parts[1 - i]}_in"
            body += [f"%{x}m{i}_ = ait.mul {first}, %e_in : S", f"%{x}n{i}_ = ait.mul {second}, %f_in : S"]
            body += [f"%{x}o{i}_ = ait.{sign} %{x}m{i}_, %{x}n{i}_ : S"]
    body += ["%p_ = ait.cast %g_in : S", "%l_ = ait.add %ko1_, %p_ : S"]
    text = (
        f"fused_elementwise({', '.join(f'%{c}' for c in 'abcdefg')}) {{\n"
        f"  ^bb0({', '.join(f'%{c}_in: S' for c in 'abcdef')}, %g_in: i64):\n"
        + "".join(f"    {line}\n" for line in body)
        + "    ait.yield %qo0_, %qo1_, %ko0_, %l_ : S, S, S, S\n  }"
    )
    strides = {i: ("s*96", "96", "32", "1") for i in range(4)} | {i: ("s*64", "32", "s*32", "1") for i in (7, 8)}
    return form("rotations", text, *[half] * 4, angle, angle, position, to=[half] * 4, strides=strides)


def neighbours(name: str, row: str, **options: object) -> Form:
    """Rotated pairs: every other element of the input, of the tables, and of the result."""
    one, table = "b x s x 12 x 1 x T", "s x 12 x 1 x T"
    text = (
        "fused_elementwise(%a, %b, %c, %d) {\n  ^bb0(%a_in: S, %b_in: S, %c_in: S, %d_in: S):\n"
        "    %m_ = ait.mul %a_in, %c_in : S\n    %n_ = ait.mul %b_in, %d_in : S\n    %o_ = ait.sub %m_, %n_ : S\n"
        "    %p_ = ait.mul %b_in, %c_in : S\n    %q_ = ait.mul %a_in, %d_in : S\n    %r_ = ait.add %p_, %q_ : S\n"
        "    ait.yield %o_, %r_ : S, S\n  }"
    )
    whole, of_table = (f"s*{row}", row, "2", "1"), ("48", "2", "1")
    strides = {0: whole, 1: whole, 2: of_table, 3: of_table, 4: whole, 5: whole}
    return form(name, text, one, one, table, table, to=[one] * 2, strides=strides, **options)


BATCHES = ({"b": 2, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 3}, {"b": 33, "s": 40})
REPEATS = ({"b": 5, "s": 8}, {"b": 2, "s": 3}, {"b": 64, "s": 20})
LONG = "(b*s) x 1003"
FUSED = Spec(
    "fused_elementwise",
    (
        total("same", "b x s x 24", "b x s x 24", to="b x s x 24"),
        total("bias", "b x s x 24", "24", to="b x s x 24"),
        total("scalar", "b x s x 24", "", to="b x s x 24"),
        total("middle", "b x s x 24", "b x 1 x 24", "s x 1", to="b x s x 24"),
        total("rank0", "", "", to=""),
        total("odd", "b x s x 13", "13", to="b x s x 13", offset=1),
        total(
            "strided", "b x s x 24", "b x s x 24", to="b x s x 24",
            strides={0: ("s*48", "48", "1"), 1: ("s*24", "1", "s"), 2: ("s*32", "32", "1"), 3: ("24*s", "1", "s")},
        ),
        total("misaligned", "b x s x 24", "24", to="b x s x 24", offset=3),
        total("odd-rows", "b x s x 77", "77", "b x s x 1", to="b x s x 77"),
        total(
            "odd-mixed", "b x s x 77", "b x 1 x 77", "s x 1", to="b x s x 77",
            offset=1, strides={0: ("s*85", "85", "1")},
        ),
        total("odd-results", "b x s x 77", to="b x s x 77", offset=5, strides={1: ("s*99", "99", "1")}),
        total(
            "pitched-rows", "(b*s) x 77", "(b*s) x 1", "77", to="(b*s) x 77", strides={3: ("88", "1"), 4: ("80", "1")}, both=True,
        ),
        rotations(),
        neighbours("neighbours", "24"),
        neighbours("pairs", "32", within={1: (0, 1), 3: (2, 1), 5: (4, 1)}, both=True),
        neighbours("pairs-odd-rows", "26", within={1: (0, 1), 3: (2, 1), 5: (4, 1)}),
        neighbours("pairs-misaligned", "32", within={1: (0, 1), 3: (2, 1), 5: (4, 1)}, offset=1),
        # few rows, more than the blocks of four multiprocessors keep rows for, and more than those of a large card do
        total("repeat-row", LONG, "1003", to=LONG, types=("f16",), envs=REPEATS, few=REPEATS[:2]),
        total(
            "repeat-rows", "1003", LONG, "1003", LONG, "", to=LONG,
            types=("bf16",), envs=REPEATS, few=REPEATS[:2], offset=3,
        ),
        total("repeat-row-odd", LONG, "1003", to=LONG, types=("f32",), envs=REPEATS, few=REPEATS[:2], offset=1),
        total("repeat-first", "1003", LONG, to=LONG, types=("f64",), envs=REPEATS, few=REPEATS[:2], offset=1),
        total(
            "repeat-elsewhere", LONG, "1003", to=LONG,
            types=("f16",), envs=REPEATS, few=REPEATS[:2], offset=5, strides={0: ("1005", "1")},
        ),
    ),
    MAPS, "b = 0 to 64, s = 0 to 64", BATCHES, [*BATCHES[:3], {"b": 5, "s": 21}],
)  # fmt: skip

SPECS = (*UNARY_SPECS, *BINARY_SPECS, CLAMP, COMPARE, WHERE, CAST, BITCAST, FUSED)
