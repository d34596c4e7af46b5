"""Elementwise kernels on the CPU: each op, broadcasts, strides, several results, odd and empty sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from ait_mlir.lowering.kernels import Target
from tests.kernels.harness import Case, Library, assert_close, check, reference, source_of

FLOATS = ("f16", "bf16", "f32", "f64")
UNARY = (
    *("neg", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "relu", "gelu", "fast_gelu", "silu"),
    *("abs", "floor", "sin", "cos", "log1p", "expm1"),
)
BINARY = ("add", "sub", "mul", "div", "max", "min")
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
ENVS = ({"n": 1}, {"n": 7}, {"n": 4099})


def unary(op: str, t: str) -> Case:
    return Case(
        f"ait.graph @g(%x: !ait.tensor<n x {t}>) dims {{n = 0 to 100000}} {{\n"
        f'  %y = ait.{op} %x : !ait.tensor<n x {t}>\n  ait.output "y" %y : !ait.tensor<n x {t}>\n}}',
        ENVS,
    )


def binary(op: str, t: str, result: str | None = None) -> Case:
    return Case(
        f"ait.graph @g(%a: !ait.tensor<n x 3 x {t}>, %b: !ait.tensor<3 x {t}>) dims {{n = 0 to 100000}} {{\n"
        f"  %y = ait.{op} %a, %b : !ait.tensor<n x 3 x {result or t}>\n"
        f'  ait.output "y" %y : !ait.tensor<n x 3 x {result or t}>\n}}',
        ENVS,
    )


UNARY_CASES = {(op, t): unary(op, t) for op in UNARY for t in FLOATS}
INTEGER_CASES = {(op, t): unary(op, t) for op in ("neg", "relu", "abs") for t in ("i8", "i32", "i64")}
BINARY_CASES = {(op, t): binary(op, t) for op in BINARY for t in (*FLOATS, "i8", "i32", "i64")}
POW_CASES = {t: binary("pow", t) for t in FLOATS}
COMPARE_CASES = {(p, t): binary(f"compare {p}", t, "i1") for p in PREDICATES for t in ("f16", "f32", "i32")}
CAST_CASES = {
    (a, b): Case(
        f"ait.graph @g(%x: !ait.tensor<n x {a}>) dims {{n = 0 to 100000}} {{\n"
        f'  %y = ait.cast %x : !ait.tensor<n x {b}>\n  ait.output "y" %y : !ait.tensor<n x {b}>\n}}',
        ENVS,
    )
    for a in ("f16", "bf16", "f32", "i1", "i8", "i32", "i64", "f64")
    for b in ("f16", "bf16", "f32", "f64", "i1", "i8", "i32", "i64")
}


FEW_ENVS = ({"b": 2, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 3}, {"b": 33, "s": 40})


def fused(
    shapes: tuple[str, ...], result: str, t: str, envs: Sequence[dict[str, int]] = FEW_ENVS, **options: object
) -> Case:
    """sum = a + b..., out = gelu(sum), with both kept, over operands of these shapes."""
    names = [f"%{c}" for c in "abcdefg"[: len(shapes)]]
    types = [f"!ait.tensor<{s}{t}>" for s in shapes]
    scalar = t if t == "f64" else "f32"
    arguments = ", ".join(f"%s{i}: {scalar}" for i in range(len(shapes)))
    lines = [f"%t0 = ait.constant 0.5 : {scalar}"]
    for i in range(len(shapes)):
        lines.append(f"%t{i + 1} = ait.add %t{i}, %s{i} : {scalar}")
    last = f"%t{len(shapes)}"
    return Case(
        f"ait.graph @g({', '.join(f'{n}: {x}' for n, x in zip(names, types, strict=True))}) "
        f"dims {{b = 0 to 64, s = 0 to 64}} {{\n"
        f"  %y, %z = ait.fused_elementwise({', '.join(names)}) {{\n  ^bb0({arguments}):\n"
        + "".join(f"    {line}\n" for line in lines)
        + f"    %g = ait.fast_gelu {last} : {scalar}\n    ait.yield {last}, %g : {scalar}, {scalar}\n"
        f"  }} : !ait.tensor<{result}{t}>, !ait.tensor<{result}{t}>\n"
        f'  ait.output "y" %y : !ait.tensor<{result}{t}>\n  ait.output "z" %z : !ait.tensor<{result}{t}>\n}}',
        [*envs],
        **options,  # type: ignore[arg-type]
    )


LAYOUT_CASES = {
    f"{name}-{t}": fused(shapes, result, t, **options)
    for t in FLOATS
    for name, shapes, result, options in (
        ("same", ("b x s x 24 x ", "b x s x 24 x "), "b x s x 24 x ", {}),
        ("bias", ("b x s x 24 x ", "24 x "), "b x s x 24 x ", {}),
        ("scalar", ("b x s x 24 x ", ""), "b x s x 24 x ", {}),
        ("middle", ("b x s x 24 x ", "b x 1 x 24 x ", "s x 1 x "), "b x s x 24 x ", {}),
        ("rank0", ("", ""), "", {}),
        ("odd", ("b x s x 13 x ", "13 x "), "b x s x 13 x ", {"offset": 1}),
        (
            "strided",
            ("b x s x 24 x ", "b x s x 24 x "),
            "b x s x 24 x ",
            {"strides": {0: ("s*48", "48", "1"), 1: ("s*24", "1", "s"), 2: ("s*32", "32", "1"), 3: ("24*s", "1", "s")}},
        ),
        ("misaligned", ("b x s x 24 x ", "24 x "), "b x s x 24 x ", {"offset": 3}),
        ("odd-rows", ("b x s x 77 x ", "77 x ", "b x s x 1 x "), "b x s x 77 x ", {}),
        (
            "odd-mixed",
            ("b x s x 77 x ", "b x 1 x 77 x ", "s x 1 x "),
            "b x s x 77 x ",
            {"offset": 1, "strides": {0: ("s*85", "85", "1")}},
        ),
        ("odd-results", ("b x s x 77 x ",), "b x s x 77 x ", {"offset": 5, "strides": {1: ("s*99", "99", "1")}}),
    )
}
REPEAT_CASES = {
    f"repeat-{name}-{t}": fused(
        shapes, "(b*s) x 1003 x ", t, envs=[{"b": 5, "s": 8}, {"b": 2, "s": 3}, {"b": 64, "s": 20}], **options
    )
    for name, t, shapes, options in (
        ("row", "f16", ("(b*s) x 1003 x ", "1003 x "), {}),
        ("rows", "bf16", ("1003 x ", "(b*s) x 1003 x ", "1003 x ", "(b*s) x 1003 x ", ""), {"offset": 3}),
        ("row", "f32", ("(b*s) x 1003 x ", "1003 x "), {"offset": 1}),
        ("row", "f64", ("1003 x ", "(b*s) x 1003 x "), {"offset": 1}),
        ("elsewhere", "f16", ("(b*s) x 1003 x ", "1003 x "), {"offset": 5, "strides": {0: ("1005", "1")}}),
    )
}
"""Few rows, more than the blocks of four multiprocessors keep rows for, and more than those of a large card do."""


def rotations(t: str) -> Case:
    """Query and key rotated by the same angles, as one: halves of heads that are parts of one product, written into
    the halves of others; the positions are the factor of one element a row."""
    half, angle, position = f"!ait.tensor<b x s x 2 x 16 x {t}>", f"!ait.tensor<b x s x 1 x 16 x {t}>", "b x s x 1 x 1"
    parts = ("q0", "q1", "k0", "k1")
    scalar = "f64" if t == "f64" else "f32"
    body: list[str] = []
    for x in "qk":
        for i, sign in ((0, "sub"), (1, "add")):
            first, second = f"%{x}{i}_", f"%{x}{1 - i}_"
            body += [f"%{x}m{i} = ait.mul {first}, %c_ : {scalar}", f"%{x}n{i} = ait.mul {second}, %s_ : {scalar}"]
            body += [f"%{x}o{i} = ait.{sign} %{x}m{i}, %{x}n{i} : {scalar}"]
    body += [f"%p = ait.cast %i_ : {scalar}", f"%r = ait.add %ko1, %p : {scalar}"]
    return Case(
        f"ait.graph @g({', '.join(f'%{p}: {half}' for p in parts)}, %c: {angle}, %s: {angle}, "
        f"%i: !ait.tensor<{position} x i64>) dims {{b = 0 to 64, s = 0 to 64}} {{\n"
        f"  %y0, %y1, %y2, %y3 = ait.fused_elementwise({', '.join(f'%{p}' for p in (*parts, 'c', 's', 'i'))}) {{\n"
        f"  ^bb0({', '.join(f'%{p}_: {scalar}' for p in (*parts, 'c', 's'))}, %i_: i64):\n"
        + "".join(f"    {line}\n" for line in body)
        + f"    ait.yield %qo0, %qo1, %ko0, %r : {', '.join([scalar] * 4)}\n"
        f"  }} : {', '.join([half] * 4)}\n" + "".join(f'  ait.output "y{i}" %y{i} : {half}\n' for i in range(4)) + "}",
        [*FEW_ENVS],
        strides={i: ("s*96", "96", "32", "1") for i in range(4)} | {i: ("s*64", "32", "s*32", "1") for i in (7, 8)},
    )


LAYOUT_CASES |= {f"rotations-{t}": rotations(t) for t in FLOATS}
WHERE = Case(
    "ait.graph @g(%c: !ait.tensor<n x 1 x i1>, %a: !ait.tensor<n x 5 x bf16>, %b: !ait.tensor<bf16>) dims {n = 0 to 99} {\n"
    "  %y = ait.where %c, %a, %b : !ait.tensor<n x 5 x bf16>\n"
    '  ait.output "y" %y : !ait.tensor<n x 5 x bf16>\n}',
    [{"n": 4}, {"n": 0}],
)
ROUNDED_INSIDE = Case(
    "ait.graph @g(%a: !ait.tensor<n x f32>) dims {n = 0 to 9999} {\n"
    "  %y = ait.fused_elementwise(%a) {\n  ^bb0(%x: f32):\n"
    "    %h = ait.cast %x : f16\n    %k = ait.constant 3.0 : f16\n    %m = ait.mul %h, %k : f16\n"
    "    %e = ait.exp %m : f16\n    %w = ait.cast %e : f32\n    ait.yield %w : f32\n"
    '  } : !ait.tensor<n x f32>\n  ait.output "y" %y : !ait.tensor<n x f32>\n}',
    [{"n": 300}],
)
CONSTANTS = Case(
    "ait.graph @g(%a: !ait.tensor<n x f32>) dims {n = 0 to 9999} {\n"
    "  %y, %z, %w = ait.fused_elementwise(%a) {\n  ^bb0(%x: f32):\n"
    "    %i = ait.constant -inf : f32\n    %q = ait.constant nan : f32\n    %t = ait.constant 0.1 : f32\n"
    "    ait.yield %i, %q, %t : f32, f32, f32\n"
    "  } : !ait.tensor<n x f32>, !ait.tensor<n x f32>, !ait.tensor<n x f32>\n"
    '  ait.output "y" %y : !ait.tensor<n x f32>\n  ait.output "z" %z : !ait.tensor<n x f32>\n'
    '  ait.output "w" %w : !ait.tensor<n x f32>\n}',
    [{"n": 5}],
)
ALL = [
    *UNARY_CASES.values(),
    *INTEGER_CASES.values(),
    *BINARY_CASES.values(),
    *POW_CASES.values(),
    *COMPARE_CASES.values(),
    *CAST_CASES.values(),
    *LAYOUT_CASES.values(),
    *REPEAT_CASES.values(),
    WHERE,
    ROUNDED_INSIDE,
    CONSTANTS,
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(ALL, tmp_path_factory.mktemp("map"))


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 6e-8, -6e-8, 88.0, -88.0, 1e4, -1e4, 0.5, 3.0])


@pytest.mark.parametrize("key", UNARY_CASES, ids="-".join)
def test_unary(library: Library, key: tuple[str, str]) -> None:
    t = key[1]
    # functions of a difference (gelu's tail is 1 + erf) lose what float32 loses there
    floor = 3e-7 if t != "f64" else 1e-15
    check(library, UNARY_CASES[key], ulps={"f32": 4, "f64": 8}.get(t, 0.51), floor=floor)


@pytest.mark.parametrize("key", UNARY_CASES, ids="-".join)
def test_special_values(library: Library, key: tuple[str, str]) -> None:
    check_special_values(library, key)


def check_special_values(library: Library, key: tuple[str, str]) -> None:
    case = UNARY_CASES[key]
    dtype = library.run(case, {"n": 1}, [np.ones(1)])[0].dtype
    with np.errstate(over="ignore"):
        inputs = [SPECIAL.astype(dtype)]
    (got,) = library.run(case, {"n": len(SPECIAL)}, inputs)
    (want,) = reference(case, {"n": len(SPECIAL)}, inputs)
    assert_close(got[np.isfinite(SPECIAL)], want[np.isfinite(SPECIAL)], ulps=16, floor=1e-6)
    limits = ~np.isfinite(inputs[0].astype(np.float64))
    with np.errstate(over="ignore"):
        assert_close(got[limits], want[limits].astype(got.dtype).astype(np.float64), ulps=1)


ODD = ("neg", "tanh", "erf", "sin", "sqrt", "floor", "log1p", "expm1")


@pytest.mark.parametrize("key", [key for key in UNARY_CASES if key[0] in ODD], ids="-".join)
def test_zeros_keep_their_sign(library: Library, key: tuple[str, str]) -> None:
    zeros = np.array([0.0, -0.0] * 9)
    (got,) = library.run(UNARY_CASES[key], {"n": len(zeros)}, [zeros])
    np.testing.assert_array_equal(np.signbit(got.astype(np.float64)), np.signbit(zeros) != (key[0] == "neg"))


@pytest.mark.parametrize("key", [*INTEGER_CASES], ids="-".join)
def test_integers(library: Library, key: tuple[str, str]) -> None:
    check(library, INTEGER_CASES[key], ulps=0)


@pytest.mark.parametrize("key", BINARY_CASES, ids="-".join)
def test_binary(library: Library, key: tuple[str, str]) -> None:
    check(library, BINARY_CASES[key], ulps=0.51 if key[1] in FLOATS else 0)


@pytest.mark.parametrize("t", POW_CASES)
def test_pow(library: Library, t: str) -> None:
    check_pow(library, t)


def check_pow(library: Library, t: str) -> None:
    a = np.array([[4.0, 2.0, -2.0], [0.0, 0.0, 9.0], [1.0, np.inf, -1.5], [np.nan, 1.0, 0.25]])
    b = np.array([0.5, 0.0, 3.0])
    case = POW_CASES[t]
    (got,) = library.run(case, {"n": 4}, [a, b])
    assert_close(got, reference(case, {"n": 4}, [a, b])[0], ulps=4)


@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["max", "min"])
def test_max_and_min_keep_nan(library: Library, op: str, t: str) -> None:
    case = BINARY_CASES[op, t]
    a = np.array([[np.nan, 1, 2], [3, np.nan, np.inf]])
    b = np.array([1, 2, np.nan])
    (got,) = library.run(case, {"n": 2}, [a, b])
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), [[True, False, True], [False, True, True]])


def test_integer_division_never_traps(library: Library) -> None:
    case = BINARY_CASES["div", "i32"]
    lowest = -(2**31)
    inputs = [np.array([[7, lowest, -7]], np.int32), np.array([0, -1, 2], np.int32)]
    (got,) = library.run(case, {"n": 1}, inputs)
    assert got.tolist() == [[0, lowest, -3]]


@pytest.mark.parametrize("key", COMPARE_CASES, ids="-".join)
def test_compare(library: Library, key: tuple[str, str]) -> None:
    check(library, COMPARE_CASES[key], ulps=0)


@pytest.mark.parametrize("key", CAST_CASES, ids="-".join)
def test_cast(library: Library, key: tuple[str, str]) -> None:
    check(library, CAST_CASES[key], ulps=0.5)


@pytest.mark.parametrize("t", ["i8", "i32", "i64"])
def test_cast_saturates(library: Library, t: str) -> None:
    check_cast_saturates(library, t)


def check_cast_saturates(library: Library, t: str) -> None:
    case = CAST_CASES["f32", t]
    inputs = [np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -1.9, 127.5, -128.5], np.float32)]
    (got,) = library.run(case, {"n": 8}, inputs)
    np.testing.assert_array_equal(got, reference(case, {"n": 8}, inputs)[0])


@pytest.mark.parametrize("key", [*LAYOUT_CASES, *REPEAT_CASES])
def test_layouts(library: Library, key: str) -> None:
    t = key.rpartition("-")[2]
    check(
        library,
        {**LAYOUT_CASES, **REPEAT_CASES}[key],
        ulps={"f32": 4, "f64": 8}.get(t, 0.51),
        floor=3e-7 if t != "f64" else 1e-15,
    )


def test_where(library: Library) -> None:
    check(library, WHERE, ulps=0)


def test_explicit_rounding_inside_of_a_region(library: Library) -> None:
    x = np.linspace(-3, 3, 300).astype(np.float32)
    (got,) = library.run(ROUNDED_INSIDE, {"n": 300}, [x])
    half = (x.astype(np.float16).astype(np.float32) * np.float32(3)).astype(np.float16)
    want = np.exp(half.astype(np.float64)).astype(np.float16).astype(np.float64)
    assert_close(got.astype(np.float16), want, ulps=1)


def test_constants_are_exact(library: Library) -> None:
    y, z, w = library.run(CONSTANTS, {"n": 5}, [np.zeros(5, np.float32)])
    assert (y == -np.inf).all() and np.isnan(z).all() and (w == np.float32(0.1)).all()


CUDA = Target("cuda", "sm_90a")


def repeated_in(case: Case, target: Target = CUDA) -> str | None:
    """The bits of the rows that repeat in the call of the template, if it has any."""
    found = re.search(r"::map<\w+, (0x[0-9a-f]+)>\(", source_of([case], target))
    return found and found[1]


def test_rows_that_repeat_are_known_to_the_template() -> None:
    rows = "(b*s) x 1003 x "
    assert repeated_in(fused((rows, "1003 x "), rows, "f16")) == "0x2"
    assert repeated_in(fused(("1003 x ", rows, "", "1003 x "), rows, "f32")) == "0x9"
    assert repeated_in(fused(("b x s x 1003 x ", "1003 x "), "b x s x 1003 x ", "bf16")) == "0x2"
    assert repeated_in(fused(("b x s x ", "s x "), "b x s x ", "f32")) == "0x2"
    assert repeated_in(fused(("b x s x 1003 x ", "s x 1003 x "), "b x s x 1003 x ", "f16")) == "0x2"


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (fused(("(b*s) x 1008 x ", "1008 x "), "(b*s) x 1008 x ", "f16"), "rows are whole chunks of 8"),
        (fused(("(b*s) x 1002 x ", "1002 x "), "(b*s) x 1002 x ", "f64"), "rows are whole chunks of 2"),
        (fused(("(b*s) x 63 x ", "63 x "), "(b*s) x 63 x ", "f16"), "rows are too short"),
        (fused(("b x s x 1003 x ", "b x 1 x 1003 x "), "b x s x 1003 x ", "f16"), "three dims"),
        (fused(("(b*s) x 1003 x ", "1003 x ", "(b*s) x 1 x "), "(b*s) x 1003 x ", "f16"), "a column"),
        (fused(("(b*s) x 1003 x ", "1003 x "), "(b*s) x 1003 x ", "f16", strides={0: ("1005", "1")}), "rows apart"),
        (fused(("(b*s) x 1003 x ", "1003 x "), "(b*s) x 1003 x ", "f16", strides={2: ("1005", "1")}), "results apart"),
        (fused(("(b*s) x 1003 x ", "1003 x "), "(b*s) x 1003 x ", "f16", strides={1: ("2",)}), "every second element"),
        (binary("add", "i8"), "bytes"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_no_row_repeats(case: Case, why: str) -> None:
    assert repeated_in(case) is None, why


def test_rows_repeat_on_cuda_only() -> None:
    case = fused(("(b*s) x 1003 x ", "1003 x "), "(b*s) x 1003 x ", "f16")
    assert repeated_in(case, Target("cpu", "native")) is None
