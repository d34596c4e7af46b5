"""Numbers with a scale: each granularity, each stored type, zero points, packed numbers, views."""

from __future__ import annotations

from tests.specs.spec import FLOATS, Spec, form
from tests.specs.tolerance import BITS, ROUNDED

DIMS = "b = 0 to 64, s = 0 to 3000"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 257})
FEW = ENVS[:3]
Q8 = ("i8", "ui8", "i16", "i4", "ui4", "f8E4M3FN", "f8E5M2")
ZERO = Q8[:5]
QUANTIZE = Spec(
    "quantize",
    (
        *(form(f"to-{t}", "quantize %a scale %b", "b x s x f32", "f8E8M0FNU", to=f"b x s x {t}", types=("f32",)) for t in Q8),
        form("from", "quantize %a scale %b", "b x s x T", "f8E8M0FNU", to="b x s x f8E4M3FN", types=FLOATS),
        form("zero", "quantize %a scale %b zero %c", "b x s x f32", "f8E8M0FNU", "T", to="b x s x T", types=ZERO),
        form("rows", "quantize %a scale %b", "b x s x f32", "b x 1 x f8E8M0FNU", to="b x s x T", types=("i8", "f8E5M2")),
        form(
            "groups", "quantize %a scale %b zero %c blocks [1, 32]",
            "b x (2*s + 1) x f32", "b x ((2*s + 1) ceildiv 32) x f8E8M0FNU", "b x ((2*s + 1) ceildiv 32) x i32",
            to="b x (2*s + 1) x T", types=("i8", "i4"),
        ),
        form(
            "tiles", "quantize %a scale %b blocks [b + 2, 8, 2]", "(b + 2) x s x 7 x f16", "1 x (s ceildiv 8) x 4 x f8E8M0FNU",
            to="(b + 2) x s x 7 x T", types=("f8E4M3FN",), strides={0: ("7*s + 3", "7", "1"), 2: ("1", "b + 2", "s*(b + 2)")}, offset=1,
        ),
    ),
    BITS, DIMS, ENVS, FEW, ("f32",),
    without={"graphs": "it jumps where a quotient is nearly a tie"},
)  # fmt: skip
DEQUANTIZE = Spec(
    "dequantize",
    (
        *(form(f"from-{t}", "dequantize %a scale %b", f"b x s x {t}", "f32", to="b x s x T") for t in Q8),
        form("zero", "dequantize %a scale %b zero %c", "b x s x ui8", "f16", "ui8", to="b x s x T"),
        form("columns", "dequantize %a scale %b", "b x s x f8E4M3FN", "s x bf16", to="b x s x T"),
        form(
            "groups", "dequantize %a scale %b zero %c blocks [1, 32]",
            "b x (2*s + 1) x ui4", "b x ((2*s + 1) ceildiv 32) x f8E8M0FNU", "b x ((2*s + 1) ceildiv 32) x ui4", to="b x (2*s + 1) x T",
        ),
        form(
            "tiles", "dequantize %a scale %b blocks [b + 2, 8, 2]", "(b + 2) x s x 7 x f8E5M2", "1 x (s ceildiv 8) x 4 x f8E4M3FN",
            to="(b + 2) x s x 7 x T", strides={0: ("7*s + 3", "7", "1"), 2: ("1", "b + 2", "s*(b + 2)")}, offset=1,
        ),
    ),
    ROUNDED, DIMS, ENVS, FEW,
)  # fmt: skip
UNPACK = Spec(
    "unpack",
    (
        form("even", "unpack %a", "b x s x ui8", to="b x (2*s) x T"),
        form("odd", "unpack %a", "b x (s + 1) x ui8", to="b x (2*s + 1) x T", strides={0: ("s + 9", "1")}, offset=1),
    ),
    BITS, DIMS, ENVS, FEW, ("i4", "ui4"),
)  # fmt: skip
SPECS = (QUANTIZE, DEQUANTIZE, UNPACK)
