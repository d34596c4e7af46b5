"""Several products or norms in one op: problems of different sizes, and groups of rows with ends that a tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from tests.specs.gemm import stored
from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import PRODUCTS, ROWS

BIAS_RELU = ("%s = ait.add %acc, %x0 : S", "%y = ait.relu %s : S")
BIAS_RESIDUAL = ("%s = ait.add %acc, %x0 : S", "%y = ait.add %s, %x1 : S")


def epilogue(lines: Sequence[str], operands: Sequence[str], each: int) -> str:
    """An epilogue on `each` operands of a product, which are `%x0, %x1, ...` in its lines; the last value is `%y`."""
    if not lines:
        return ""
    arguments = ", ".join(["%acc: S", *(f"%x{i}: S" for i in range(each))])
    body = "".join(f"    {line}\n" for line in (*lines, "ait.yield %y : S"))
    return f" epilogue({', '.join(operands)}) {{\n  ^bb0({arguments}):\n{body}  }}"


def grouped(
    name: str, layout: str, sizes: Sequence[tuple[str, str, str]], lines: Sequence[str] = (), **options: object
) -> Form:
    """Products of these sizes (M, N, K), with a bias of each where there is an epilogue."""
    factors = [x for m, n, k in sizes for x in (stored(layout[0], m, k), stored(layout[1], k, n))]
    biases = [n for _, n, _ in sizes] if lines else []
    names = [f"%{c}" for c in "abcdefghij"]
    text = f"grouped_gemm {layout} {', '.join(names[: len(factors)])}"
    text += epilogue(lines, names[len(factors) : len(factors) + len(biases)], 1)
    operands = [f"{x} x T" for x in (*factors, *biases)]
    return form(name, text, *operands, to=[f"{m} x {n} x T" for m, n, _ in sizes], **options)


def ragged(
    name: str,
    n: str,
    k: str,
    lines: Sequence[str] = (),
    extras: Sequence[str] = (),
    ends: str = "i32",
    **options: object,
) -> Form:
    names = [f"%{c}" for c in "defg"[: len(extras)]]
    text = "ragged_gemm %a, %b to %c" + epilogue(lines, names, len(extras))
    return form(
        name,
        text,
        f"m x {k} x T",
        f"g x {k} x {n} x T",
        f"g x {ends}",
        *extras,
        to=f"m x {n} x T",
        **{"below": {2: 60}, **options},
    )


UNEQUAL = (("m", "24", "k"), ("b", "n", "32"), ("m", "40", "8"))
GROUPED_GEMM = Spec(
    "grouped_gemm",
    (
        grouped("plain", "rcr", UNEQUAL),
        grouped("bias", "rcr", UNEQUAL, BIAS_RELU),
        grouped("many", "rrr", (("m", "8", "16"), ("b", "16", "8"), ("m", "n", "k"), ("7", "9", "3"), ("m", "1", "1"))),
        grouped("turned", "ccr", (("m", "n", "k"), ("m", "5", "3")), BIAS_RELU),
        grouped(
            "view", "crr", (("m", "n", "k"), ("m", "5", "3")), BIAS_RELU,
            strides={0: ("m + 3", "1"), 6: ("n + 5", "1"), 7: ("1", "m")}, offset=1,
        ),
    ),
    PRODUCTS,
    "b = 0 to 64, m = 0 to 400, n = 0 to 400, k = 0 to 600",
    (
        {"b": 5, "m": 37, "n": 45, "k": 70},
        {"b": 1, "m": 1, "n": 1, "k": 1},
        {"b": 64, "m": 130, "n": 200, "k": 512},
        {"b": 0, "m": 5, "n": 0, "k": 0},
    ),
    ({"b": 5, "m": 37, "n": 45, "k": 40}, {"b": 0, "m": 5, "n": 0, "k": 0}),
)  # fmt: skip

RAGGED_GEMM = Spec(
    "ragged_gemm",
    (
        ragged("plain", "n", "k"),
        ragged("even", "(8*n)", "(8*k)"),
        ragged("bias", "n", "k", BIAS_RESIDUAL, ("n x T", "m x n x T"), "i64"),
        ragged(
            "turned", "n", "k", ends="i64", below={}, strides={0: ("1", "m"), 1: ("n*k", "1", "k"), 3: ("n + 3", "1")}, offset=1,
        ),
    ),
    PRODUCTS,
    "g = 0 to 64, m = 0 to 400, n = 0 to 100, k = 0 to 100",
    (
        {"g": 5, "m": 37, "n": 45, "k": 70},
        {"g": 40, "m": 70, "n": 30, "k": 24},
        {"g": 1, "m": 1, "n": 1, "k": 1},
        {"g": 7, "m": 300, "n": 72, "k": 64},
        {"g": 0, "m": 5, "n": 4, "k": 3},
        {"g": 3, "m": 0, "n": 4, "k": 3},
        {"g": 3, "m": 9, "n": 4, "k": 0},
    ),
    ({"g": 5, "m": 75, "n": 9, "k": 20}, {"g": 3, "m": 9, "n": 4, "k": 0}, {"g": 0, "m": 5, "n": 4, "k": 3}),
)  # fmt: skip


def norms(
    name: str, shapes: Sequence[str], factors: str = "", lines: str = "", extras: Sequence[str] = (), **options: object
) -> Form:
    """Norms of tensors of these shapes; `factors` are words of "scale bias", `extras` one operand of the epilogue for
    each norm, `%d_in` in its `lines`."""
    names = iter("%" + c for c in "abcdefghijklmnopqr")
    count, kind = len(shapes), "rms" if name.startswith("rms") else "layer"
    text, operands = f"grouped_norm {kind} {', '.join(next(names) for _ in shapes)}", [*shapes]
    for word in factors.split():
        text += f" {word}({', '.join(next(names) for _ in shapes)})"
        operands += [shape.split(" x ")[-1] for shape in shapes]
    text += " eps 1e-05"
    if lines:
        operands += extras
        values = ", ".join(next(names) for _ in range(count))
        text += f" epilogue({values}) {{\n  ^bb0(%acc_: S, %d_in: S):\n    {lines}\n    ait.yield %y_ : S\n  }}"
    return form(name, text, *(f"{x} x T" for x in operands), to=[f"{shape} x T" for shape in shapes], **options)


GATE = "%m_ = ait.sigmoid %acc_ : S\n    %y_ = ait.mul %m_, %d_in : S"
TOWERS = ("b x 24", "b x 40", "m x 32")
GROUPED_NORM = Spec(
    "grouped_norm",
    (
        norms("plain", TOWERS),
        norms("both", TOWERS, "scale bias"),
        norms("rms", TOWERS, "scale"),
        norms("bias", ("b x 7", "b x n", "b x 1"), "bias"),
        norms("ranks", ("b x 3 x 24", "24", "m x 8"), "scale"),
        norms("long", ("b x n", "b x 2000"), "scale bias"),
        norms("longest", ("b x (8*n)", "b x 4104")),
        norms("gate", TOWERS, "scale", GATE, TOWERS),
        norms("rms-gate", ("b x n", "m x 9"), "", GATE, ("b x n", "1 x 9")),
        norms("column-gate", ("b x 24", "b x 3 x 9"), "", GATE, ("b x 1", "3 x 1")),
        norms(
            "parts", ("b x 24", "b x 40"), "scale bias", GATE, ("b x 24", "b x 40"),
            strides={0: ("64", "1"), 1: ("64", "1"), 8: ("80", "1")},
        ),
        norms("offset", ("b x 24", "b x 40"), "scale", strides={0: ("65", "1"), 5: ("43", "1")}, offset=1),
    ),
    ROWS,
    "b = 0 to 64, m = 0 to 400, n = 0 to 1100",
    (
        {"b": 5, "m": 37, "n": 45},
        {"b": 1, "m": 1, "n": 1},
        {"b": 64, "m": 130, "n": 1100},
        {"b": 0, "m": 5, "n": 0},
        {"b": 3, "m": 0, "n": 130},
    ),
    ({"b": 5, "m": 9, "n": 45}, {"b": 0, "m": 5, "n": 0}, {"b": 2, "m": 0, "n": 130}),
)  # fmt: skip

SPECS = (GROUPED_GEMM, GROUPED_NORM, RAGGED_GEMM)
