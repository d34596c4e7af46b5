"""Sums by index of one value are counts and a product."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, f32

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.index import ScatterOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.ir.parser import check
from ait_mlir.options import CompileOptions
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.counted_sums import count_sums
from tests.selection.cards import parse

TARGET = CompileOptions("cuda", "sm_90a").device
SUM = """ait.graph @g(%x: !ait.tensor<20 x TYPE> STATE, %w: !ait.tensor<1 x f16>, %v: !ait.tensor<10000 x TYPE>,
                     %i: !ait.tensor<INDEX x i64>, %j: !ait.tensor<10000 x i64>) {
  VALUE
  %y = ait.scatter KIND %x, %n at(%i) dims [0] kept [] : !ait.tensor<20 x TYPE>
  ait.output "y" %y PLACE : !ait.tensor<20 x TYPE>
}"""
ONE = "%n = ait.constant 1.5 : !ait.tensor<10000 x TYPE>"
REPEATED = """%e = ait.expand %w : !ait.tensor<10000 x f16>
  %n = ait.fused_elementwise(%e) {
  ^bb0(%0: f32):
    %1 = ait.neg %0 : f32
    ait.yield %1 : f32
  } : !ait.tensor<10000 x TYPE>"""
OTHERS = "%n = ait.neg %v : !ait.tensor<10000 x TYPE>"


def count(module: ModuleOp) -> None:
    for op in module.ops:
        if isinstance(op, GraphOp):
            count_sums(op.block, TARGET)


@pytest.mark.parametrize(
    ("value", "kind", "element", "index", "counts"),
    [
        (ONE, "add", "f32", "10000", True),
        (ONE, "add", "f16", "10000", True),  # rounded once
        (REPEATED, "add", "f32", "10000", True),
        (OTHERS, "add", "f32", "10000", False),
        (ONE, "set", "f32", "10000", False),
        (ONE, "add", "f32", "1", False),  # one index for all values
    ],
)
def test_one_value_is_counted(value: str, kind: str, element: str, index: str, counts: bool) -> None:
    text = SUM.replace("VALUE", value).replace("KIND", kind).replace("INDEX", index).replace("TYPE", element)
    module = parse(text.replace("STATE", "").replace("PLACE", ""))
    checker = SemanticsChecker(module)
    count(module)
    check(module)
    assert checker.after("form-loops", module, count) == []
    (scatter,) = (op for op in module.walk() if isinstance(op, ScatterOp))
    assert str(tensor_type(scatter.input).element_type) == ("i32" if counts else element)


def test_a_state_is_updated_in_place() -> None:
    text = SUM.replace("VALUE", ONE).replace("KIND", "add").replace("INDEX", "10000").replace("TYPE", "f32")
    module = parse(text.replace("STATE", "donated").replace("PLACE", "in place of %x"))
    count(module)
    (scatter,) = (op for op in module.walk() if isinstance(op, ScatterOp))
    assert tensor_type(scatter.input).element_type == f32
