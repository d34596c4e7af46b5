"""Matrix products: every layout, batches, epilogues, strides, sizes of 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import PRODUCTS

LAYOUTS = ("rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc")
DIMS = "b = 0 to 9, m = 0 to 400, n = 0 to 400, k = 0 to 600"
ENVS = (
    {"b": 2, "m": 37, "n": 45, "k": 70},
    {"b": 1, "m": 1, "n": 1, "k": 1},
    {"b": 3, "m": 130, "n": 129, "k": 515},
    {"b": 1, "m": 16, "n": 224, "k": 64},
    {"b": 2, "m": 0, "n": 5, "k": 3},
    {"b": 2, "m": 5, "n": 0, "k": 3},
    {"b": 2, "m": 5, "n": 7, "k": 0},
)
FEW = (*ENVS[:2], ENVS[6])
FEW_ROWS = tuple(
    {"b": 1, "m": m, "n": n, "k": k} for m, n, k in ((1, 130, 600), (2, 113, 33), (3, 9, 515), (4, 45, 70), (5, 3, 600))
)


def stored(layout: str, rows: str, cols: str) -> str:
    return f"{rows} x {cols}" if layout == "r" else f"{cols} x {rows}"


def product(
    name: str,
    op: str,
    layout: str,
    *lines: str,
    batch: tuple[str, str, str] = ("", "", ""),
    sizes: tuple[str, str, str] = ("m", "n", "k"),
    extras: Sequence[str] = (),
    result: str = "T",
    further: Mapping[str, str] | None = None,
    **options: object,
) -> Form:
    """One product. `batch`: leading dims of A, B and the result (`"b x "`); `extras`: types of the epilogue's operands,
    which are `%c_in, %d_in, ...` in its `lines`, the sums being `%acc` (and `%up` of a gated product), the result `%y`.
    `further` are more values that it yields, with the element types of their results."""
    gated = op == "gated_gemm"
    m, n, k = sizes
    a = batch[0] + stored(layout[0], m, k) + " x T"
    b = batch[1] + stored(layout[1], k, f"(2*{n})" if gated else n) + " x T"
    names = "cdefgh"[: len(extras)]
    scalars = {"T": "S"}
    kinds = [t.rpartition(" x ")[2] for t in extras]
    arguments = [f"%{c}_in: {scalars.get(kind, kind)}" for c, kind in zip(names, kinds, strict=True)]
    arguments = ["%acc: S", *(["%up: S"] if gated else []), *arguments]
    stored_as = {"%y": result, **(further or {})}
    computed = {"f16": "f32", "bf16": "f32", "f8E4M3FN": "f32", "f8E5M2": "f32", **scalars}
    yielded = f"ait.yield {', '.join(stored_as)} : {', '.join(computed.get(t, t) for t in stored_as.values())}"
    body = "".join(f"    {line if ' : ' in line else f'{line} : S'}\n" for line in (*lines, yielded))
    epilogue = f" epilogue({', '.join(f'%{c}' for c in names)}) {{\n  ^bb0({', '.join(arguments)}):\n{body}  }}"
    text = f"{op} {layout} %a, %b{epilogue if lines else ''}"
    shape = f"{batch[2]}{stored(layout[2], m, n)}"
    return form(name, text, a, b, *extras, to=[f"{shape} x {t}" for t in stored_as.values()], **options)


def byte_product(
    name: str,
    op: str,
    layout: str,
    *lines: str,
    batch: tuple[str, str, str] = ("", "", ""),
    sizes: tuple[str, str, str] = ("m", "n", "k"),
    b_type: str = "i8",
    extras: Sequence[str] = (),
    sums: str = "i32",
    result: str = "",
    types: tuple[str, ...] = ("i8", "ui8"),
    **options: object,
) -> Form:
    """A product of numbers of 8 bits, A of `T` by B of `b_type`, with sums of a type, and of at most two operands in its
    epilogue, whose lines have the types of their values."""
    m, n, k = sizes
    a, b = f"{batch[0]}{stored(layout[0], m, k)} x T", f"{batch[1]}{stored(layout[1], k, n)} x {b_type}"
    kinds = [t.rpartition(" x ")[2] for t in extras]
    arguments = [f"%acc: {sums}", *(f"%{c}_in: {kind}" for c, kind in zip("cd", kinds, strict=False))]
    body = "".join(f"    {line}\n" for line in lines)
    epilogue = f" epilogue({', '.join(f'%{c}' for c in 'cd'[: len(extras)])}) {{\n  ^bb0({', '.join(arguments)}):\n{body}  }}"
    to = f"{batch[2]}{stored(layout[2], m, n)} x {result or sums}"
    return form(name, f"{op} {layout} %a, %b{epilogue if lines else ''}", a, b, *extras, to=to, types=types, **options)


def float_product(name: str, op: str, *lines: str, b_type: str = "f8E4M3FN", **options: object) -> Form:
    """A product of 8-bit floats whose rows lie along k, for cards that multiply these."""
    options |= {"without": frozenset(("cpu", "rocm", "graphs")), "types": FLOATS8, "sums": "f32", "both": True}
    return byte_product(name, op, "rcr", *lines, b_type=b_type, **options)  # type: ignore[arg-type]


FLOATS8 = ("f8E4M3FN", "f8E5M2")
SCALED = (
    "%f = ait.cast %acc : f32", "%s = ait.mul %f, %c_in : f32", "%t = ait.mul %s, %d_in : f32",
    "%y = ait.relu %t : f32", "ait.yield %y : f32",
)  # fmt: skip
"""A sum with scales by row and by column."""
FLOAT_SCALED = ("%s = ait.mul %acc, %c_in : f32", *SCALED[2:])
MOVED = ("%s = ait.sub %acc, %c_in : i32", "%t = ait.add %s, %d_in : i32", "%y = ait.cast %t : i8", "ait.yield %y : i8")
QUANTIZED = ("%q = ait.div %s, %d_in", "%y = ait.clamp %q min -448.0 max 448.0")
"""A sum divided by a scale, as f8E4M3FN stores it."""
WHOLE = (
    "%f = ait.cast %acc : f32", "%e = ait.constant 0.0625 : f32", "%q = ait.mul %f, %e : f32", "%r = ait.round %q : f32",
    "%y = ait.cast %r : i8", "ait.yield %y : i8",
)  # fmt: skip
"""A sum of integers, divided by a power of 2 and stored in i8: every quotient is exact."""
NARROW = ("f16", "bf16", "f32")
EIGHTS = ("m", "(8*n)", "(8*k)")
LESS = tuple({**env, "n": -(-env["n"] // 8), "k": -(-env["k"] // 8)} for env in ENVS)
LEAD = ("b x ", "", "b x ")
BATCHES = ("b x ", "b x ", "b x ")
ROW, RESIDUAL = "n x T", "b x m x n x T"
SUM = "%s = ait.add %acc, %c_in"
SUMMED = ("%y = ait.add %acc, %d_in", "%t = ait.mul %y, %c_in", "%s = ait.relu %t")
"""The sum with a residual, and what the next layer makes of it."""

GEMM = Spec(
    "gemm",
    (
        *(product(layout, "gemm", layout) for layout in LAYOUTS),
        product("lead", "gemm", "rcr", batch=LEAD),
        product("few", "gemm", "rcr", SUM, "%y = ait.relu %s", extras=[ROW], envs=FEW_ROWS, few=FEW_ROWS[:1]),
        product("bias", "gemm", "rcr", "%y = ait.add %acc, %c_in", batch=LEAD, extras=[ROW]),
        *(
            product(f"bias-{last}", "gemm", "rcr", SUM, f"%y = ait.{last} %s", extras=[ROW])
            for last in ("gelu", "relu", "fast_gelu", "silu")
        ),
        product("residual", "gemm", "rrr", SUM, "%y = ait.add %d_in, %s", batch=LEAD, extras=[ROW, RESIDUAL]),
        # rows of all matrices start on 16 bytes
        product("even-gelu", "gemm", "rcr", SUM, "%y = ait.fast_gelu %s", sizes=EIGHTS, extras=["(8*n) x T"], envs=LESS),
        product(
            "even-residual", "gemm", "rrr", SUM, "%y = ait.add %d_in, %s",
            batch=LEAD, sizes=EIGHTS, extras=["(8*n) x T", "b x m x (8*n) x T"], envs=LESS,
        ),
        product(
            "position", "gemm", "rcr", SUM, "%y = ait.add %d_in, %s",
            batch=LEAD, extras=["1 x n x T", "1 x m x n x T"],
        ),
        product("wide", "gemm", "rcr", "%y = ait.add %acc, %c_in", extras=["f32"], result="f32", types=NARROW),
        product(
            "where", "gemm", "rcr", "%z = ait.constant 0.5", "%s = ait.mul %acc, %z", "%y = ait.where %c_in, %s, %d_in",
            extras=["m x n x i1", "m x 1 x T"], types=("f32",),
        ),
        product(
            "compare", "gemm", "rcr", "%y = ait.compare lt %acc, %c_in : i1", extras=[ROW], result="i1",
            types=("f16",), envs=ENVS[:4], few=ENVS[:1],
        ),
        product("column", "gemm", "rcc", SUM, "%y = ait.add %d_in, %s", extras=["n x 1 x T", "1 x m x T"]),
        product("vector", "gemm", "rcr", "%y = ait.add %acc, %c_in", sizes=("1", "n", "k"), extras=[ROW]),
        product(
            "view", "gemm", "rcr", SUM, "%y = ait.add %d_in, %s", batch=LEAD, extras=[ROW, RESIDUAL], offset=3,
            strides={0: ("m*(k + 9)", "k + 9", "1"), 1: ("2*k + 1", "1"), 2: ("1",), 3: ("n", "b*n", "1"),
                     4: ("3*n*m", "3*n", "1")},
        ),
        # several results
        product("summed", "gemm", "rcr", *SUMMED, batch=LEAD, extras=[ROW, RESIDUAL], further={"%s": "T"}),
        product(
            "even-summed", "gemm", "rrr", *SUMMED, batch=LEAD, sizes=EIGHTS, extras=["(8*n) x T", "b x m x (8*n) x T"],
            further={"%s": "T"}, envs=LESS,
        ),
        product(
            "few-summed", "gemm", "rcr", *SUMMED, extras=[ROW, "m x n x T"], further={"%s": "T"},
            envs=FEW_ROWS, few=FEW_ROWS[:1],
        ),
        product(
            "summed-column", "gemm", "rcc", *SUMMED, extras=["n x 1 x T", "1 x m x T"], further={"%s": "f32"},
            types=NARROW,
        ),
        product(
            "three", "gemm", "rcr", SUM, "%y = ait.relu %s", "%t = ait.mul %acc, %c_in", extras=["m x 1 x T"],
            result="f32", further={"%s": "T", "%t": "f16"}, types=NARROW,
        ),
        product(
            "summed-vector", "gemm", "rcr", *SUMMED, sizes=("1", "n", "k"), extras=[ROW, ROW], further={"%s": "T"},
        ),
        product(
            "summed-view", "gemm", "rcr", *SUMMED, batch=LEAD, extras=[ROW, RESIDUAL], further={"%s": "T"}, offset=3,
            strides={4: ("n", "b*n", "1"), 5: ("3*n*m", "3*n", "1")},
        ),
        # results of 8 bits
        product("numbers", "gemm", "rcr", SUM, *QUANTIZED, batch=LEAD, extras=[ROW, "f32"], result="f8E4M3FN", types=NARROW),
        product(
            "even-numbers", "gemm", "rcr", SUM, *QUANTIZED, sizes=("m", "(16*n)", "(16*k)"), extras=["(16*n) x T", "m x 1 x f32"],
            result="f8E4M3FN", types=("f16", "bf16"), envs=LESS,
        ),
        product("few-numbers", "gemm", "rcr", SUM, *QUANTIZED, extras=[ROW, "f32"], result="f8E4M3FN", types=("f16",),
                envs=FEW_ROWS, few=FEW_ROWS[:1]),
        product("numbers-view", "gemm", "rrr", "%y = ait.clamp %acc min -57344.0 max 57344.0", result="f8E5M2", types=("f16",),
                strides={2: ("n + 3", "1")}, offset=3),
        # integers of 8 bits
        byte_product("bytes-even-numbers", "gemm", "rcr", *WHOLE, sizes=("m", "(16*n)", "(16*k)"), result="i8", envs=LESS),
        *(byte_product(f"bytes-{layout}", "gemm", layout) for layout in LAYOUTS),
        byte_product("bytes-unsigned", "gemm", "rcr", b_type="ui8", batch=LEAD),
        byte_product(
            "bytes-scaled", "gemm", "rcr", *SCALED, batch=LEAD, extras=["b x m x 1 x f32", "n x f32"], result="f16",
        ),
        byte_product("bytes-moved", "gemm", "rrr", *MOVED, extras=["m x 1 x i32", "n x i32"], result="i8"),
        byte_product(
            "bytes-even", "gemm", "rcr", *SCALED, sizes=("m", "(16*n)", "(16*k)"), extras=["m x 1 x f32", "(16*n) x f32"],
            result="f32", envs=LESS,
        ),
        # floats of 8 bits
        float_product("float8", "gemm"),
        float_product("float8-e5m2", "gemm", *FLOAT_SCALED, b_type="f8E5M2", batch=LEAD, extras=["b x m x 1 x f32", "n x f32"]),
        float_product(
            "float8-even", "gemm", *FLOAT_SCALED, sizes=("m", "(16*n)", "(16*k)"), extras=["m x 1 x f32", "(16*n) x f32"],
            result="f16", envs=LESS,
        ),
        float_product(
            "float8-numbers", "gemm", "%s = ait.mul %acc, %c_in : f32", "%q = ait.div %s, %d_in : f32",
            "%y = ait.clamp %q min -448.0 max 448.0 : f32", "ait.yield %y : f32", sizes=("m", "(16*n)", "(16*k)"),
            extras=["m x 1 x f32", "f32"], result="f8E4M3FN", envs=LESS,
        ),
        float_product(
            "float8-view", "gemm", batch=LEAD, offset=3,
            strides={0: ("m*(k + 9)", "k + 9", "1"), 1: ("2*k + 1", "1"), 2: ("3*n*m", "3*n", "1")},
        ),
        byte_product(
            "bytes-view", "gemm", "rcr", batch=LEAD, offset=3,
            strides={0: ("m*(k + 9)", "k + 9", "1"), 1: ("2*k + 1", "1"), 2: ("3*n*m", "3*n", "1")},
        ),
    ),
    PRODUCTS, DIMS, ENVS, FEW,
)  # fmt: skip
GATED_GEMM = Spec(
    "gated_gemm",
    (
        product("silu", "gated_gemm", "rcr", "%s = ait.silu %acc", "%y = ait.mul %s, %up", batch=LEAD),
        product(
            "residual", "gated_gemm", "rcr", "%s = ait.fast_gelu %up", "%p = ait.mul %acc, %s",
            "%y = ait.add %p, %c_in", extras=["m x n x T"],
        ),
        product(
            "numbers", "gated_gemm", "rcr", "%g = ait.silu %acc", "%s = ait.mul %g, %up", "%q = ait.div %s, %c_in",
            "%y = ait.clamp %q min -448.0 max 448.0", extras=["f32"], result="f8E4M3FN",
        ),
        product(
            "biases", "gated_gemm", "rcr", "%g = ait.add %acc, %c_in", "%u = ait.add %up, %d_in", "%s = ait.silu %g",
            "%y = ait.mul %s, %u", batch=LEAD, extras=[ROW, ROW], offset=1,
        ),
    ),
    PRODUCTS, DIMS, ENVS, FEW, ("f16", "bf16"),
    without={
        "cpu": "a CPU has no kernel for it, and no pass makes it there",
        "rocm": "HIP has no kernel for it, and no pass makes it there",
        "codegen": "the corpus has the ops that it is made of",
        "graphs": "the generator makes the ops that it is made of",
    },
)  # fmt: skip
ROTATED = "rotated_gemm %a, %b cosines %c sines %d heads 3 size 32"
X, W, Y = "b x m x (8*k) x T", "(8*n + 96) x (8*k) x T", "b x m x (8*n + 96) x T"
ROTATED_GEMM = Spec(
    "rotated_gemm",
    (
        form("all", ROTATED, X, W, "b x m x 16 x T", "b x m x 16 x T", to=Y),
        form("rows", ROTATED, X, W, "m x 16 x T", "m x 16 x T", to=Y),
        form("one", ROTATED, X, W, "16 x T", "b x 1 x 16 x T", to=Y),
    ),
    PRODUCTS, DIMS.replace("k = 0", "k = 1"),
    tuple({**env, "n": -(-env["n"] // 8), "k": max(1, -(-env["k"] // 8))} for env in ENVS),
    ({"b": 2, "m": 37, "n": 6, "k": 9}, {"b": 1, "m": 1, "n": 1, "k": 1}),
    ("f16", "bf16"),
    without=GATED_GEMM.without,
)  # fmt: skip
BMM = Spec(
    "bmm",
    (
        *(product(layout, "bmm", layout, batch=BATCHES) for layout in LAYOUTS),
        product(
            "shared", "bmm", "rcr", "%y = ait.add %acc, %c_in",
            batch=("b x 3 x ", "3 x ", "b x 3 x "), extras=["3 x 1 x n x T"],
        ),
        product("one", "bmm", "rrr", batch=("b x 1 x ", "1 x 2 x ", "b x 2 x ")),
        product(
            "heads", "bmm", "rcr", batch=("b x 3 x ", "b x 3 x ", "b x 3 x "), envs=ENVS[:3],
            strides={0: ("3*m*k", "k", "3*k", "1"), 1: ("3*n*k + 8", "k", "3*k", "1"), 2: ("3*m*n", "n", "3*n", "1")},
        ),
        product(
            "summed", "bmm", "rrr", *SUMMED, batch=("b x 3 x ", "3 x ", "b x 3 x "),
            extras=["3 x 1 x n x T", "b x 3 x m x n x T"], further={"%s": "T"}, envs=ENVS[:6],
            strides={5: ("3*m*n", "n", "3*n", "1")},
        ),
        product("numbers", "bmm", "rrr", "%s = ait.tanh %acc", *QUANTIZED, batch=BATCHES, extras=["n x T", "f32"], result="f8E4M3FN",
                types=("f16",), envs=ENVS[:4], few=ENVS[:1]),
        *(byte_product(f"bytes-{layout}", "bmm", layout, batch=BATCHES) for layout in ("rrr", "rcr", "crc")),
        byte_product(
            "bytes-scaled", "bmm", "rcr", *SCALED, batch=("b x 3 x ", "3 x ", "b x 3 x "), b_type="ui8",
            extras=["b x 3 x m x 1 x f32", "3 x 1 x n x f32"], result="bf16",
        ),
        float_product("float8", "bmm", batch=BATCHES),
    ),
    PRODUCTS, DIMS, ENVS, FEW,
)  # fmt: skip

def stored_product(
    name: str, k: str, numbers: str, scale: str, rest: str, *extras: str, n: str = "n", epilogue: str = "", **options: object
) -> Form:
    """One product with a stored weight of n rows; `rest` has the clauses after the scale, `%d` is the first of the extra
    operands."""
    text = f"stored_gemm %a by %b scale %c {rest}{epilogue}"
    return form(name, text, f"m x {k} x T", f"{n} x {numbers}", f"{n} x {scale}", *extras, to=f"m x {n} x T", **options)


def scaled_product(
    name: str, k: str, group: int, block: int, *extras: str, n: str = "n", b_type: str = "f8E4M3FN", epilogue: str = "", **options: object
) -> Form:
    """One product with scales of blocks; `%e` is the first of the extra operands."""
    text = f"scaled_gemm %a by %b rows %c columns %d group {group} block {block}{epilogue}"
    groups = f"({k} ceildiv {group})"
    options.setdefault("to", f"m x {n} x f32")
    return form(
        name, text, f"m x {k} x T", f"{n} x {k} x {b_type}", f"m x {groups} x f32", f"({n} ceildiv {block}) x {groups} x f32",
        *extras, **options,
    )


SCALED_SUM = " epilogue(%e, %f) {\n  ^bb0(%acc: f32, %y: f32, %z: f32):\n    %s = ait.add %acc, %y : f32\n    %t = ait.relu %s : f32\n    %u = ait.add %t, %z : f32\n    ait.yield %u : f32\n  }"
SCALED_NUMBERS = " epilogue(%e) {\n  ^bb0(%acc: f32, %y: f32):\n    %q = ait.div %acc, %y : f32\n    %z = ait.clamp %q min -448.0 max 448.0 : f32\n    ait.yield %z : f32\n  }"
SCALED_GEMM = Spec(
    "scaled_gemm",
    (
        scaled_product("any", "k", 7, 5),
        scaled_product("odd", "(2*k + 1)", 128, 128, b_type="f8E5M2", strides={0: ("2*k + 9", "1"), 4: ("n + 3", "1")}, offset=1),
        # as tensor cores take them
        scaled_product("blocks", "(16*k + 16)", 128, 128, n="(8*n)"),
        scaled_product("odd-columns", "(16*k + 16)", 128, 128, b_type="f8E5M2"),
        scaled_product("long", "464", 128, 64, "n x bf16", "m x n x bf16", epilogue=SCALED_SUM, to="m x n x bf16"),
        scaled_product("numbers", "256", 128, 128, "f32", n="(8*n)", epilogue=SCALED_NUMBERS, to="m x (8*n) x f8E4M3FN"),
        scaled_product("half", "256", 128, 128, "(8*n) x f16", "m x (8*n) x f16", n="(8*n)", epilogue=SCALED_SUM, to="m x (8*n) x f16"),
    ),
    PRODUCTS, "m = 0 to 400, n = 0 to 400, k = 0 to 60",
    (
        {"m": 37, "n": 45, "k": 20}, {"m": 1, "n": 1, "k": 0}, {"m": 130, "n": 129, "k": 33}, {"m": 0, "n": 5, "k": 3},
        {"m": 5, "n": 0, "k": 3},
    ),
    ({"m": 5, "n": 9, "k": 9}, {"m": 70, "n": 17, "k": 16}, {"m": 0, "n": 4, "k": 3}), FLOATS8,
    without=dict.fromkeys(("cpu", "rocm", "graphs"), "only CUDA cards multiply 8-bit floats"), needs="float8",
)  # fmt: skip

STORED_SUM = " epilogue({names}) {{\n  ^bb0(%acc: S, %y: S, %z: S):\n    %s = ait.add %acc, %y : S\n    %t = ait.relu %s : S\n    %u = ait.add %t, %z : S\n    ait.yield %u : S\n  }}"
STORED_GEMM = Spec(
    "stored_gemm",
    (
        stored_product("bytes", "k", "k x i8", "(k ceildiv 32) x f32", "group 32"),
        stored_product("unsigned", "k", "k x ui8", "(k ceildiv 7) x f16", "zero %d group 7", "n x (k ceildiv 7) x i8"),
        stored_product("packed", "k", "(k ceildiv 2) x ui8", "(k ceildiv 10) x bf16", "group 10 signed"),
        stored_product(
            "sum", "(2*k + 1)", "(k + 1) x ui8", "((2*k + 1) ceildiv 16) x f16", "zero %d group 16",
            "n x ((2*k + 1) ceildiv 16) x ui8", "n x T", "m x n x T", epilogue=STORED_SUM.format(names="%e, %f"),
            strides={0: ("2*k + 9", "1"), 4: ("1",), 5: ("3*n", "1"), 6: ("2*n", "1")}, offset=1,
        ),
        # as tensor cores take them
        stored_product("columns-8", "208", "208 x i8", "1 x f32", "group 208", "n x T", "m x n x T", epilogue=STORED_SUM.format(names="%d, %e")),
        stored_product("columns-4", "224", "112 x ui8", "1 x f16", "zero %d group 224", "n x 1 x ui8"),
        stored_product("group-8", "448", "448 x ui8", "7 x f16", "zero %d group 64", "n x 7 x ui8"),
        stored_product("group-4", "608", "304 x ui8", "5 x f32", "group 128 signed", "n x T", "m x n x T", epilogue=STORED_SUM.format(names="%d, %e")),
        stored_product("lane-8", "144", "144 x i8", "5 x f16", "zero %d group 32", "n x 5 x i8"),
        stored_product("lane-4", "160", "80 x ui8", "5 x f16", "zero %d group 32", "n x 5 x ui8"),
        stored_product("lane-signed", "192", "96 x ui8", "3 x bf16", "group 64 signed"),
    ),
    PRODUCTS,
    "m = 0 to 70, n = 0 to 100, k = 0 to 700",
    (
        {"m": 1, "n": 45, "k": 70},
        {"m": 7, "n": 100, "k": 601},
        {"m": 13, "n": 1, "k": 1},
        {"m": 70, "n": 72, "k": 64},
        {"m": 0, "n": 4, "k": 3},
        {"m": 5, "n": 0, "k": 3},
        {"m": 2, "n": 9, "k": 0},
    ),
    ({"m": 1, "n": 45, "k": 37}, {"m": 18, "n": 33, "k": 6}, {"m": 2, "n": 9, "k": 0}),
    ("f16", "bf16", "f32"),
)  # fmt: skip
SPECS = (GEMM, GATED_GEMM, ROTATED_GEMM, BMM, SCALED_GEMM, STORED_GEMM)
