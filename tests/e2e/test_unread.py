"""Results without a reader are not written; those that are outputs, read by another launch, or shown are."""

from __future__ import annotations

import numpy as np
import pytest

from ait_mlir.driver import compile_module, emit, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model

SORT = "%v, %p = ait.sort %x dim 1 : !ait.tensor<rows x 9 x f32>, !ait.tensor<rows x 9 x i64>"
VALUES = 'ait.output "v" %v : !ait.tensor<rows x 9 x f32>'
PLACES = 'ait.output "p" %p : !ait.tensor<rows x 9 x i64>'
MAXIMA = """%m = ait.reduce max %v dims [0] : !ait.tensor<9 x f32>
  ait.output "m" %m : !ait.tensor<9 x f32>"""


def module(*lines: str):
    body = "\n  ".join((SORT, *lines))
    return parse_text(
        context(), f"ait.graph @order(%x: !ait.tensor<rows x 9 x f32>) dims {{rows = 1 to 8}} {{\n  {body}\n}}"
    )


@pytest.mark.parametrize(
    ("lines", "unread"),
    [((VALUES,), ["output1"]), ((PLACES,), ["output0"]), ((VALUES, PLACES), []), ((PLACES, MAXIMA), [])],
)
@pytest.mark.parametrize("kind", ["cpu", "cuda", "rocm"])
def test_results_without_a_reader_are_told_to_the_kernel(kind, lines, unread):
    planned = run_to_phase(module(*lines), "planned", CompileOptions(kind, "native" if kind == "cpu" else None))
    text = "\n".join(emit(planned).files.values())
    assert [name for name in ("output0", "output1") if f"ait::unread<ait::Inner::unit>({name}, " in text] == unread
    shown = "\n".join(emit(planned, inspected=True).files.values())
    assert "ait::unread" not in shown


def test_the_result_that_is_read_is_right(tmp_path):
    x = np.random.default_rng(0).integers(0, 5, (4, 9)).astype(np.float32)
    order = np.argsort(x, 1, kind="stable")
    for line, name, wanted in ((VALUES, "v", np.sort(x, 1)), (PLACES, "p", order)):
        with Model(compile_module(module(line), output=tmp_path / f"{name}.ait")) as model:
            np.testing.assert_array_equal(model.run_with_tensors({"x": x})[name], wanted)
