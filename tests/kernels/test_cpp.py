"""What may reach generated C++: literals, comments, numbers and regions; and what the kernels are told of their loops."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute, Region

from ait_mlir.dialects.ait.dtypes import f8E4M3FN
from ait_mlir.dims import Scope, parse
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.cpp import comment, cstr, element_type, literal
from ait_mlir.lowering.kernels.loops import Loop, collapse, inner_kind
from ait_mlir.lowering.regions import functor, op_functor
from tests.kernels.harness import CPU, Case

NASTY = [
    '"; system("id"); "',
    "\\",
    "a\nb",
    "??/",
    "\x00",
    "*/ //",
    "é\U0001f600",
    "%s%n",
    "\r\n#include <x>",
    "\ud800",
]


def test_cstr_uses_safe_characters_only() -> None:
    for text in NASTY:
        body = cstr(text)[1:-1]
        assert '"' not in body and "\n" not in body and "?" not in body
        assert body.encode().decode("unicode_escape").encode("latin-1") == text.encode("utf-8", "surrogatepass")


def test_cstr_escapes_end_before_digits() -> None:
    assert cstr("\x0178") == '"\\00178"'


def test_comments_stay_on_their_line() -> None:
    for text in [*NASTY, "x\\", "trigraph ??/", "\u2028"]:
        line = comment(text)
        assert line.startswith("// ") and line.isascii() and line.isprintable()
        assert "\\" not in line and "?" not in line
    assert len(comment("x" * 5000)) < 300


NUMBERS: list[tuple[float | int, Attribute]] = [
    (0.1, f32), (0.1, f64), (-0.0, f32), (math.inf, f32), (-math.inf, f64), (math.nan, f32), (1e-45, f32), (1e300, f32),
    (65504.0, f16), (0.1, f16), (0.1, bf16), (-math.inf, bf16), (7, f32),
    (True, i1), (-128, i8), (-(2**31), i32), (2**31 - 1, i32), (-(2**63), i64), (2**63 - 1, i64),
]  # fmt: skip


def test_literals_are_exact(tmp_path: Path) -> None:
    lines = [f"  o[{i}] = static_cast<double>({literal(v, t)});" for i, (v, t) in enumerate(NUMBERS)]
    source = '#include "ait/math.h"\nextern "C" void numbers(double* o) {\n' + "\n".join(lines) + "\n}\n"
    library = ctypes.CDLL(str(build_library({"n.cc": source}, CPU, tmp_path)))
    out = (ctypes.c_double * len(NUMBERS))()
    library.numbers(out)
    import ml_dtypes

    dtypes = {f16: np.float16, bf16: ml_dtypes.bfloat16, f32: np.float32, f64: np.float64}
    with np.errstate(over="ignore"):
        want = [float(np.float64(dtypes[t](v))) if t in dtypes else float(v) for v, t in NUMBERS]
    np.testing.assert_array_equal(list(out), want)
    assert math.copysign(1, out[2]) == -1


def test_element_types_are_known() -> None:
    assert element_type(bf16) == "ait::bfloat16"
    with pytest.raises(ValueError, match="not an element type"):
        element_type(Case(IDENTITY).op.results[0].type)


IDENTITY = (
    "ait.graph @g(%x: !ait.tensor<4 x f16>) {\n  %y = ait.cast %x : !ait.tensor<4 x i32>\n"
    '  ait.output "y" %y : !ait.tensor<4 x i32>\n}'
)
REGION = (
    "ait.graph @g(%x: !ait.tensor<4 x f16>, %y: !ait.tensor<4 x i32>) {\n"
    "  %a, %b = ait.fused_elementwise(%x, %y) {\n  ^bb0(%0: f32, %1: i32):\n"
    "    %2 = ait.constant 2.0 : f32\n    %3 = ait.mul %0, %2 : f32\n    %4 = ait.compare lt %3, %0 : i1\n"
    "    %5 = ait.where %4, %0, %3 : f32\n    %6 = ait.gelu %5 : f32\n    %7 = ait.neg %1 : i32\n"
    "    ait.yield %6, %7 : f32, i32\n  } : !ait.tensor<4 x f16>, !ait.tensor<4 x i32>\n"
    '  ait.output "a" %a : !ait.tensor<4 x f16>\n  ait.output "b" %b : !ait.tensor<4 x i32>\n}'
)


def test_region_as_functor() -> None:
    assert functor(Case(REGION).op.regions[0], "f") == (
        "struct f {\n"
        "  static AIT_FN void apply(float in0, int32_t in1, float& out0, int32_t& out1) {\n"
        "    const float constant0 = 0x1.0000000000000p+1f;\n"
        "    const float mul0 = ait::mul<float>(in0, constant0);\n"
        "    const bool compare0 = ait::compare_lt<float>(mul0, in0);\n"
        "    const float where0 = ait::where<float>(compare0, in0, mul0);\n"
        "    const float gelu0 = ait::gelu(where0);\n"
        "    const int32_t neg0 = ait::neg(in1);\n"
        "    out0 = gelu0;\n"
        "    out1 = neg0;\n"
        "  }\n};\n"
    )


@pytest.mark.parametrize(
    ("uses", "cheaper"),
    [
        ("%y = ait.mul %g, %0 : f32", True),
        ("%y = ait.neg %g : f32", True),
        ("%y = ait.add %g, %0 : f32", False),  # where digits may cancel, the whole of them are needed
        ("%s = ait.mul %g, %0 : f32\n    %y = ait.sub %s, %0 : f32", False),
        ("%s = ait.sub %g, %0 : f32\n    %y = ait.mul %s, %g : f32", False),
        ("%y = ait.tanh %g : f32", False),
    ],
)
@pytest.mark.parametrize("name", ["gelu", "fast_gelu", "silu", "sigmoid"])
def test_activations_for_narrow_results(name: str, uses: str, cheaper: bool) -> None:
    text = (
        "ait.graph @g(%x: !ait.tensor<4 x f16>) {\n"
        f"  %a = ait.fused_elementwise(%x) {{\n  ^bb0(%0: f32):\n    %g = ait.{name} %0 : f32\n    {uses}\n"
        '    ait.yield %y : f32\n  } : !ait.tensor<4 x f16>\n  ait.output "a" %a : !ait.tensor<4 x f16>\n}'
    )
    region = Case(text).op.regions[0]
    assert (f"ait::{name}_narrow(" in functor(region, "f", [f16])) is cheaper
    assert (f"ait::{name}_narrow(" in functor(region, "f", [f8E4M3FN])) is cheaper
    assert "_narrow(" not in functor(region, "f")


@pytest.mark.parametrize(
    ("divisor", "expression"),
    [
        ("6.0", "ait::mul<float>(in0, 0x1.5555560000000p-3f)"),
        ("-4.0", "ait::mul<float>(in0, -0x1.0000000000000p-2f)"),
        ("1e-38", "ait::div_narrow(in0, constant0)"),
        ("1e38", "ait::div_narrow(in0, constant0)"),
        ("0.0", "ait::div_narrow(in0, constant0)"),
    ],
)
def test_divisions_for_narrow_results(divisor: str, expression: str) -> None:
    text = (
        "ait.graph @g(%x: !ait.tensor<4 x f16>) {\n"
        f"  %a = ait.fused_elementwise(%x) {{\n  ^bb0(%0: f32):\n    %c = ait.constant {divisor} : f32\n"
        "    %y = ait.div %0, %c : f32\n    ait.yield %y : f32\n  } : !ait.tensor<4 x f16>\n"
        '  ait.output "a" %a : !ait.tensor<4 x f16>\n}'
    )
    region = Case(text).op.regions[0]
    assert f"= {expression};" in functor(region, "f", [f16])
    assert "ait::div<float>(in0, constant0)" in functor(region, "f")


@pytest.mark.parametrize(
    ("divisor", "expression"),
    [
        ("6.0", "ait::div_float8(in0, constant0)"),  # a reciprocal would be rounded
        ("-0.25", "ait::mul<float>(in0, -0x1.0000000000000p+2f)"),
        ("0.0", "ait::div_float8(in0, constant0)"),
    ],
)
def test_divisions_for_floats_of_8_bits(divisor: str, expression: str) -> None:
    body = f"    %c = ait.constant {divisor} : f32\n    %y = ait.div %0, %c : f32\n"
    assert f"= {expression};" in functor(stored_region(body), "f", [f8E4M3FN])
    assert "ait::div<float>(in0, constant0)" in functor(stored_region(body), "f")


CAST = "    %q = ait.cast %p : f8E4M3FN\n    %y = ait.cast %q : f32\n"


@pytest.mark.parametrize(
    ("body", "result", "inner"),
    [
        ("    %y = ait.clamp %0 min -448.0 max 448.0 : f32\n", "clamp0", "in0"),
        ("    %p = ait.clamp %0 min -448.0 max 448.0 : f32\n" + CAST, "clamp0", "in0"),
        ("    %p = ait.neg %0 : f32\n" + CAST, "neg0", None),
        ("    %y = ait.clamp %0 min -448.0 max 400.0 : f32\n", "clamp0", None),
        ("    %y = ait.clamp %0 max 448.0 : f32\n", "clamp0", None),
        ("    %p = ait.clamp %0 min -448.0 max 448.0 : f32\n    %y = ait.add %p, %p : f32\n", "add0", None),
        (("    %p = ait.neg %0 : f32\n" + CAST).replace("f8E4M3FN", "f8E5M2"), "cast1", None),  # another rounding
    ],
)
def test_the_store_rounds_and_bounds_floats_of_8_bits(body: str, result: str, inner: str | None) -> None:
    found = functor(stored_region(body), "f", [f8E4M3FN])
    within, _, last = found.rpartition("  static AIT_FN")
    assert f"    out0 = {result};" in last and ("BoundedByStore" in within) is (inner is not None)
    assert inner is None or (f"out0 = {inner};" in within and "clamp" not in within)
    assert "BoundedByStore" not in functor(stored_region(body), "f")


def stored_region(body: str) -> Region:
    text = (
        f"ait.graph @g(%x: !ait.tensor<4 x f16>) {{\n  %a = ait.fused_elementwise(%x) {{\n  ^bb0(%0: f32):\n{body}"
        '    ait.yield %y : f32\n  } : !ait.tensor<4 x f8E4M3FN>\n  ait.output "a" %a : !ait.tensor<4 x f8E4M3FN>\n}'
    )
    return Case(text).op.regions[0]


def test_gelu_narrow_is_exact_enough(tmp_path: Path) -> None:
    source = '#include "ait/math.h"\nextern "C" float f(float x) { return ait::gelu_narrow(x); }\n'
    function = ctypes.CDLL(str(build_library({"g.cc": source}, CPU, tmp_path))).f
    function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
    xs = np.concatenate([np.linspace(-9, 9, 36001), [-1e4, 1e4, 1e-4, -1e-4, 0.0]]).astype(np.float32)
    got = np.array([function(x) for x in xs])
    want = np.array([0.5 * x * math.erfc(-x / math.sqrt(2)) for x in xs.astype(np.float64)])
    step = np.maximum(np.exp2(np.floor(np.log2(np.maximum(np.abs(want), 1e-30))) - 10), 2.0**-24)  # of float16
    assert (np.abs(got - want) / step).max() < 0.02
    assert function(math.inf) == math.inf and math.isnan(function(math.nan)) and math.isnan(function(-math.inf))


def test_op_as_functor() -> None:
    assert "apply(float in0, int32_t& out0) {\n    out0 = ait::cast<int32_t>(in0);" in op_functor(
        Case(IDENTITY).op, "f"
    )


def loops(*rows: tuple[str, str, str]) -> list[Loop]:
    return [Loop(parse(size), (parse(a), parse(b))) for size, a, b in rows]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([("b", "s*24", "s*24"), ("s", "24", "24"), ("24", "1", "1")], [("24*b*s", "1", "1")]),
        ([("b", "s*24", "0"), ("s", "24", "0"), ("24", "1", "1")], [("b*s", "24", "0"), ("24", "1", "1")]),
        ([("b", "24", "48"), ("1", "7", "9"), ("24", "1", "1")], [("b", "24", "48"), ("24", "1", "1")]),
        ([("b", "24", "0"), ("24", "1", "0")], [("24*b", "1", "0")]),
        ([("1", "5", "3")], [("1", "1", "1")]),
    ],
)
def test_loops_collapse(before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]) -> None:
    assert collapse(loops(*before), Scope.parse("b = 1 to 8, s = 1 to 8")) == loops(*after)


def test_kinds_of_innermost_strides() -> None:
    kinds = [inner_kind(parse(text)) for text in ("0", "1", "2", "s")]
    assert kinds == ["ait::Inner::zero", "ait::Inner::unit", "ait::Inner::strided", "ait::Inner::strided"]
