"""Elementwise kernels on the CPU beside the cases of their specifications: signs, powers, casts, rounding inside of regions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from ait_mlir.lowering.kernels import Target
from tests.kernels.harness import Case, Library, assert_close, reference, source_of
from tests.specs import SPECS

FLOATS = ("f16", "bf16", "f32", "f64")

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
ODD = (
    "neg",
    "tanh",
    "erf",
    "sin",
    "sqrt",
    "floor",
    "log1p",
    "expm1",
    "tan",
    "asin",
    "atan",
    "sinh",
    "asinh",
    "atanh",
    "erfinv",
)
SIGNED = {(op, t): SPECS[op].drawn("", t) for op in ODD for t in FLOATS}
LOGARITHMS = {t: SPECS["log2"].drawn("", t) for t in FLOATS}
POWERS = {t: SPECS["pow"].drawn("", t) for t in FLOATS}
CASTS = {t: SPECS["cast"].drawn(f"to-{t}", "f32") for t in ("i8", "i32", "i64")}
QUOTIENT = SPECS["div"].drawn("", "i32")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    cases = [
        *SIGNED.values(),
        *LOGARITHMS.values(),
        *POWERS.values(),
        *CASTS.values(),
        QUOTIENT,
        ROUNDED_INSIDE,
        CONSTANTS,
    ]
    return Library(cases, tmp_path_factory.mktemp("map"))


@pytest.mark.parametrize("key", SIGNED, ids="-".join)
def test_zeros_keep_their_sign(library: Library, key: tuple[str, str]) -> None:
    zeros = np.array([0.0, -0.0] * 9)
    (got,) = library.run(SIGNED[key], {"n": len(zeros)}, [zeros])
    np.testing.assert_array_equal(np.signbit(got.astype(np.float64)), np.signbit(zeros) != (key[0] == "neg"))


@pytest.mark.parametrize("t", FLOATS)
def test_logarithms_of_powers_of_two_are_whole(library: Library, t: str) -> None:
    exponents = np.arange(-14, 15)
    (got,) = library.run(LOGARITHMS[t], {"n": len(exponents)}, [np.exp2(exponents)])
    np.testing.assert_array_equal(got.astype(np.float64), exponents)


@pytest.mark.parametrize("t", POWERS)
def test_pow(library: Library, t: str) -> None:
    check_pow(library, t)


def check_pow(library: Library, t: str) -> None:
    a = np.array([[4.0, 2.0, -2.0], [0.0, 0.0, 9.0], [1.0, np.inf, -1.5], [np.nan, 1.0, 0.25]])
    b = np.array([0.5, 0.0, 3.0])
    case = POWERS[t]
    (got,) = library.run(case, {"n": 4}, [a, b])
    assert_close(got, reference(case, {"n": 4}, [a, b])[0], ulps=4)


def test_integer_division_never_traps(library: Library) -> None:
    lowest = -(2**31)
    inputs = [np.array([[7, lowest, -7]], np.int32), np.array([0, -1, 2], np.int32)]
    (got,) = library.run(QUOTIENT, {"n": 1}, inputs)
    assert got.tolist() == [[0, lowest, -3]]


@pytest.mark.parametrize("t", CASTS)
def test_cast_saturates(library: Library, t: str) -> None:
    check_cast_saturates(library, t)


def check_cast_saturates(library: Library, t: str) -> None:
    case = CASTS[t]
    inputs = [np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -1.9, 127.5, -128.5], np.float32)]
    (got,) = library.run(case, {"n": 8}, inputs)
    np.testing.assert_array_equal(got, reference(case, {"n": 8}, inputs)[0])


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
        (SPECS["add"].drawn("", "i8"), "bytes"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_no_row_repeats(case: Case, why: str) -> None:
    assert repeated_in(case) is None, why


def test_rows_repeat_on_cuda_only() -> None:
    case = fused(("(b*s) x 1003 x ", "1003 x "), "(b*s) x 1003 x ", "f16")
    assert repeated_in(case, Target("cpu", "native")) is None


@pytest.mark.parametrize(
    ("columns", "pitch", "pitched"), [(1003, 1008, True), (1008, 1016, False), (1003, 1005, False), (63, 64, False)]
)
def test_rows_of_results_that_lie_apart(columns: int, pitch: int, pitched: bool) -> None:
    rows = f"(b*s) x {columns} x "
    case = fused((rows, rows), rows, "f16", strides=dict.fromkeys((2, 3), (str(pitch), "1")))
    assert (re.search(r"::map<\w+, 0, true>\(", source_of([case], CUDA)) is not None) == pitched
