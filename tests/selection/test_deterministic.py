"""Sums by index with atomics: where the setting stands, and what it changes."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.module_target import target_of
from ait_mlir.options import CompileOptions

TEXT = """ait.graph @g(%x: !ait.tensor<4096 x 64 x T>, %v: !ait.tensor<65536 x 64 x T>, %i: !ait.tensor<65536 x 1 x i64>) {
  %y = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<4096 x 64 x T>
  ait.output "y" %y : !ait.tensor<4096 x 64 x T>
}
"""


def selected(element: str, deterministic: bool) -> ModuleOp:
    module = parse_source(context(), SourceText("text", TEXT.replace("T", element)))
    return run_to_phase(module, "selected", CompileOptions("cuda", "sm_90a", deterministic=deterministic))


@pytest.mark.parametrize(
    ("element", "deterministic", "atomics"),
    [("f32", True, False), ("f32", False, True), ("f16", False, False), ("i64", True, True)],
)
def test_floats_are_added_in_any_order_only_where_the_option_says_so(
    element: str, deterministic: bool, atomics: bool
) -> None:
    text = str(selected(element, deterministic))
    assert ('#ait.kernel<"atomic"' in text) == atomics
    assert ("ait.deterministic = false" in text) == (not deterministic)
    again = parse_source(context(), SourceText("text", text))
    assert target_of(again).deterministic == deterministic


def test_other_values_are_refused() -> None:
    with pytest.raises(AitError, match="deterministic is 'no', expected True or False"):
        CompileOptions("cuda", deterministic="no")  # type: ignore[arg-type]
