"""Ops that say that their verification looks at nothing around them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ait_mlir.dialects.ait import AIT
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dialects.ait_rt import AIT_RT
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_source, parse_text
from ait_mlir.ir.source import SourceError, SourceText
from tests.lit.round_trip import valid_chunks

FILES = Path(__file__).parents[2] / "lit_tests" / "dialects"
AROUND = {
    *(getter.fget.__code__ for cls in (OpResult, BlockArgument) if (getter := cls.owner).fget),
    *(
        f.__code__
        for f in (SSAValue.uses.fget, Operation.parent_op, Operation.parent_block, Operation.parent_region)
        if f
    ),
}


def looks(op: Operation) -> list[str]:
    """The verifier's accesses to the surroundings of `op`, except its scope of dims."""
    own = {id(value) for value in (op, *op.operands, *op.results)}
    found: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code not in AROUND or id(frame.f_locals["self"]) not in own:
            return
        caller = frame.f_back
        while caller is not None and caller.f_code is not scope_of.__code__:
            caller = caller.f_back
        if caller is None:
            found.append(f"{op.name} asks for {frame.f_code.co_name}")

    sys.setprofile(watch)
    try:
        op.verify_()
    finally:
        sys.setprofile(None)
    return found


def test_verification_of_self_contained_ops_looks_at_nothing_around() -> None:
    seen: set[type[Operation]] = set()
    for path in sorted(FILES.rglob("*.mlir")):
        for text in valid_chunks(path):
            for op in parse_source(context(), SourceText(path.name, text)).walk():
                if isinstance(op, AitOp) and op.SELF_CONTAINED:
                    seen.add(type(op))
                    assert not looks(op)
    classes = {cls for dialect in (AIT, AIT_RT) for cls in dialect.operations if issubclass(cls, AitOp)}
    assert seen == {cls for cls in classes if cls.SELF_CONTAINED}


TEXT = """
ait.graph @g(%x: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<8 x 8 x f16>) dims {b = 1 to 4} {
  %0 = ait.softmax %x dim 1 : !ait.tensor<b x 8 x f16>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 8 x f16>
  %2 = ait.gemm rcr %1, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 8 x f16>
  ait.output "y" %2 : !ait.tensor<b x 8 x f16>
}
"""


def of(module: ModuleOp, name: str) -> Operation:
    """The last op of this name."""
    return [op for op in module.walk() if op.name == name][-1]


def changes_a_property(module: ModuleOp) -> None:
    of(module, "ait.softmax").properties["dim"] = IntegerAttr(2, i64)


def changes_a_type(module: ModuleOp) -> None:
    value = of(module, "ait.softmax").results[0]
    value._type = of(module, "ait.gemm").operands[1].type


def changes_a_region(module: ModuleOp) -> None:
    of(module, "ait.yield").operands = [of(module, "ait.softmax").results[0]]


def adds_a_property(module: ModuleOp) -> None:
    of(module, "ait.softmax").properties["axis"] = IntegerAttr(1, i64)


@pytest.mark.parametrize("change", [changes_a_property, changes_a_type, changes_a_region, adds_a_property])
def test_an_op_is_verified_again_when_it_is_no_longer_like_others(change: Any) -> None:
    module = parse_text(context(), TEXT)
    check(module)
    change(module)
    with pytest.raises(SourceError):
        check(module)
