"""Views of strided memory, dims of 1 among them."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dims import Expr, Scope, parse
from ait_mlir.driver import run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions

SCOPE = Scope.parse("b = 1 to 8, seq = 1 to 512")


def dims(text: str) -> tuple[Expr, ...]:
    return tuple(parse(part) for part in text.split(","))


@pytest.mark.parametrize(
    ("shape", "strides", "new", "expected"),
    [
        ("b, seq, 768", "2304*seq, 2304, 1", "b, seq, 12, 64", "2304*seq, 2304, 64, 1"),
        ("1, seq, 768", "2304*seq, 2304, 1", "1, seq, 12, 64", "2304*seq, 2304, 64, 1"),
        ("1, seq, 768", "7, 2304, 1", "1, seq, 12, 64", "2304*seq, 2304, 64, 1"),
        ("seq, 768", "2304, 1", "seq, 1, 12, 64, 1", "2304, 768, 64, 1, 1"),
        ("seq, 1, 768", "2304, 7, 1", "seq, 768", "2304, 1"),
        ("seq, 4, 8", "64, 16, 1", "seq, 32", None),
    ],
)
def test_a_reshape_of_part_of_a_row(shape: str, strides: str, new: str, expected: str | None) -> None:
    view = Strided(dims(shape), parse("768"), dims(strides)).reshape(dims(new), SCOPE)
    if expected is None:
        assert view is None
    else:
        assert view == Strided(dims(new), parse("768"), dims(expected))


QKV = """
ait.graph @f(%x: !ait.tensor<BATCH x seq x 768 x f16>) dims {b = 1 to 8, seq = 1 to 512} {
  %w = ait.param "w" : !ait.tensor<2304 x 768 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<BATCH x seq x 2304 x f16>
  %1, %2, %3 = ait.split %0 dim 2 : !ait.tensor<BATCH x seq x 768 x f16>, !ait.tensor<BATCH x seq x 768 x f16>, !ait.tensor<BATCH x seq x 768 x f16>
  %4 = ait.reshape %1 : !ait.tensor<BATCH x seq x 12 x 64 x f16>
  %5 = ait.reshape %2 : !ait.tensor<BATCH x seq x 12 x 64 x f16>
  %6 = ait.reshape %3 : !ait.tensor<BATCH x seq x 12 x 64 x f16>
  %7 = ait.permute %4 [0, 2, 1, 3] : !ait.tensor<BATCH x 12 x seq x 64 x f16>
  %8 = ait.permute %5 [0, 2, 1, 3] : !ait.tensor<BATCH x 12 x seq x 64 x f16>
  %9 = ait.permute %6 [0, 2, 1, 3] : !ait.tensor<BATCH x 12 x seq x 64 x f16>
  %10 = ait.attention %7, %8, %9 scale 0.125 : !ait.tensor<BATCH x 12 x seq x 64 x f16>
  %11 = ait.permute %10 [0, 2, 1, 3] : !ait.tensor<BATCH x seq x 12 x 64 x f16>
  %12 = ait.reshape %11 : !ait.tensor<BATCH x seq x 768 x f16>
  ait.output "y" %12 : !ait.tensor<BATCH x seq x 768 x f16>
}
"""


@pytest.mark.parametrize("batch", ["b", "1", "3"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_attention_reads_its_operands_in_place(batch: str, target: str) -> None:
    """Of one batch, too, whose dim has no stride of its own."""
    module = parse_text(
        context(), QKV.replace("BATCH", batch).replace("b = 1 to 8, ", "b = 1 to 8, " if batch == "b" else "")
    )
    run_to_phase(module, "planned", CompileOptions(target))
    assert str(module).count("ait_rt.launch") == 2
