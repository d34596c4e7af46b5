"""Reductions of everything are divided where their terms need reductions of rows."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.ir.parser import check
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.passes.row_sums import divide_row_sums
from tests.selection.cards import parse

X = "!ait.tensor<6 x 3 x 10 x TYPE>"
LOSS = f"""ait.graph @g(%x: {X}) {{
  %p = ait.softmax %x dim 2 : {X}
  %n = ait.neg %p : {X}
  %y = ait.reduce KIND %n dims DIMS : !ait.tensor<RESULT>
  MORE
  ait.output "y" %y : !ait.tensor<RESULT>
}}"""
KEPT = f'ait.output "p" %p : {X}'


def divide(module: ModuleOp) -> None:
    for op in module.ops:
        if isinstance(op, GraphOp):
            divide_row_sums(op.block)


def divided(kind: str, dims: str, result: str, element: str, more: str = "") -> list[str]:
    """The reductions of a loss after division: `mean [2] f32`."""
    text = LOSS.replace("KIND", kind).replace("DIMS", dims).replace("MORE", more)
    module = parse(text.replace("RESULT", result).replace("TYPE", element))
    checker = SemanticsChecker(module)
    divide(module)
    check(module)
    assert checker.after("form-loops", module, divide) == []
    return [described(op) for op in module.walk() if isinstance(op, ReduceOp | LoopsOp)]


def described(op: ReduceOp | LoopsOp) -> str:
    if isinstance(op, LoopsOp):
        return "loops"
    return f"{op.kind.data} {list(op.axes())} {tensor_type(op.input).element_type}"


@pytest.mark.parametrize(
    ("kind", "dims", "result", "element", "found"),
    [
        ("mean", "[0, 1, 2]", "f32", "f32", ["mean [2] f32", "mean [0, 1] f32"]),
        ("sum", "[0, 2]", "3 x f32", "f32", ["sum [2] f32", "sum [0] f32"]),
        ("max", "[1, 2]", "6 x bf16", "bf16", ["max [2] f32", "loops"]),  # only the result is rounded
        ("sum", "[2]", "6 x 3 x f32", "f32", ["sum [2] f32"]),  # only rows
        ("sum", "[0, 1]", "10 x f32", "f32", ["sum [0, 1] f32"]),  # across the rows
        ("var", "[0, 1, 2]", "f32", "f32", ["var [0, 1, 2] f32"]),  # not the variance of variances
    ],
)
def test_rows_are_reduced_first(kind: str, dims: str, result: str, element: str, found: list[str]) -> None:
    assert divided(kind, dims, result, element) == found


def test_rows_that_others_read_are_in_memory_anyway() -> None:
    assert divided("mean", "[0, 1, 2]", "f32", "f32", KEPT) == ["mean [0, 1, 2] f32"]
