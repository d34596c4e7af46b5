"""Verification between passes: left out where nothing has changed, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import DimError
from ait_mlir.ir import pipeline
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import TellingPass, run_passes
from ait_mlir.ir.source import SourceError
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import OPTIONAL, passes_between
from tests.fuzz.run import VALUE_PASSES
from tests.generator import random_graph

TEXT = """
ait.graph @g(%x: !ait.tensor<8 x f16>, %z: !ait.tensor<8 x f16>) {
  %0 = ait.add %x, %z : !ait.tensor<8 x f16>
  %1 = ait.relu %0 : !ait.tensor<8 x f16>
  ait.output "y" %1 : !ait.tensor<8 x f16>
}
"""


def find(module: ModuleOp, name: str) -> Operation:
    return next(op for op in module.walk() if op.name == name)


def block_of(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def nothing(module: ModuleOp) -> None:
    """Looks only."""


def swaps_operands(module: ModuleOp) -> None:
    add = find(module, "ait.add")
    add.operands = [add.operands[1], add.operands[0]]


def sets_an_attribute(module: ModuleOp) -> None:
    find(module, "ait.relu").attributes["note"] = StringAttr("seen")


def clones_an_op(module: ModuleOp) -> None:
    relu = find(module, "ait.relu")
    new = relu.clone()
    block_of(relu).insert_op_before(new, relu)
    relu.results[0].replace_all_uses_with(new.results[0])
    relu.detach()
    relu.erase()


def adds_an_input(module: ModuleOp) -> None:
    block = find(module, "ait.graph").regions[0].block
    block.insert_arg(block.args[0].type, 2)


def moves_an_op(module: ModuleOp) -> None:
    relu, output = find(module, "ait.relu"), find(module, "ait.output")
    relu.detach()
    block_of(output).insert_op_after(relu, output)


def breaks_a_type(module: ModuleOp) -> None:
    value = find(module, "ait.relu").results[0]
    value._type = TensorType.get(tensor_type(value).dims, f32)


def as_pass(change: Callable[[ModuleOp], None]) -> ModulePass:
    class Change(ModulePass):
        name = change.__name__

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            change(op)

    return Change()


@pytest.mark.parametrize(
    "error",
    [
        DimError("a number is beyond 64 bits"),
        OverflowError("too large"),
        MemoryError("no memory"),
        RecursionError("deep"),
    ],
)
def test_an_error_of_a_pass_has_the_place_of_its_op(error: Exception) -> None:
    def look_at(op: Operation) -> None:
        if op.name == "ait.relu":
            raise error

    def fails(module: ModuleOp) -> None:
        for op in module.walk():
            look_at(op)

    ctx = context()
    with pytest.raises(SourceError, match=rf"^sizes.mlir:4:3: error: pass 'fails': {error}"):
        run_passes(ctx, parse_text(ctx, TEXT, "sizes.mlir"), [as_pass(fails)])


def test_a_bug_of_a_pass_says_where_it_was() -> None:
    def fails(module: ModuleOp) -> None:
        for op in module.walk():
            if op.name == "ait.relu":
                raise KeyError("no such thing")

    ctx = context()
    with pytest.raises(KeyError) as raised:
        run_passes(ctx, parse_text(ctx, TEXT, "sizes.mlir"), [as_pass(fails)])
    assert raised.value.__notes__[0].startswith("sizes.mlir:4:3: error: pass 'fails': ")


def checks(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[ModuleOp], None]) -> int:
    """How often the module is verified while these passes run."""
    count = [0]
    real = pipeline.check

    def counted(*args: object) -> None:
        count[0] += 1
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "check", counted)
    ctx = context()
    run_passes(ctx, parse_text(ctx, TEXT), [as_pass(change) for change in changes])
    return count[0]


def test_what_has_not_changed_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(monkeypatch, nothing, nothing, nothing) == 1


def test_what_a_pass_has_not_changed_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    class Telling(TellingPass):
        name = "telling"

        def changes(self, ctx: Context, module: ModuleOp) -> bool:
            return False

    looked: list[ModuleOp] = []
    real = pipeline._state

    def state(module: ModuleOp) -> object:
        looked.append(module)
        return real(module)

    monkeypatch.setattr(pipeline, "_state", state)
    ctx = context()
    module = parse_text(ctx, TEXT)
    run_passes(ctx, module, [Telling(), Telling()])
    assert len(looked) == 1  # it was not verified before
    run_passes(ctx, module, [Telling(), as_pass(sets_an_attribute), Telling()], verified=True)
    assert len(looked) == 3
    run_passes(ctx, module, [as_pass(sets_an_attribute), Telling()], verify="end")
    assert len(looked) == 4


@pytest.mark.parametrize("seed", range(6))
def test_a_pass_tells_what_it_changes(seed: int) -> None:
    ctx = context()
    module = parse_text(ctx, random_graph(seed))
    told: list[bool] = []
    for p in parse_passes(",".join([*VALUE_PASSES, *VALUE_PASSES[::-1]])):
        before = str(module)
        assert isinstance(p, TellingPass)
        told.append(p.changes(ctx, module))
        assert told[-1] or str(module) == before, p.name
    assert True in told and False in told


@pytest.mark.parametrize("change", [swaps_operands, sets_an_attribute, clones_an_op])
def test_what_has_changed_is_verified(change: Callable[[ModuleOp], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(monkeypatch, nothing, change, nothing) == 2


@pytest.mark.parametrize("change", [moves_an_op, breaks_a_type, adds_an_input])
@pytest.mark.parametrize("before", [(), (nothing,), (sets_an_attribute, nothing)])
def test_a_pass_that_breaks_the_program_is_named(
    change: Callable[[ModuleOp], None], before: tuple[Callable[[ModuleOp], None], ...]
) -> None:
    ctx = context()
    with pytest.raises(SourceError, match=f"after pass '{change.__name__}'"):
        run_passes(ctx, parse_text(ctx, TEXT), [as_pass(p) for p in (*before, change, nothing)])


@pytest.mark.parametrize("name", OPTIONAL)
def test_each_optional_pass_can_be_left_out(name: str) -> None:
    """On a random graph, up to a verified plan."""
    module = parse_text(context(), random_graph(OPTIONAL.index(name)))
    pipeline = passes_between("imported", "planned", "cpu", without=(name,))
    assert name not in re.split(r"[,{}]", pipeline) and "bufferize" in pipeline
    run_passes(context(), module, parse_passes(pipeline))


def test_a_pass_that_is_left_out_does_nothing() -> None:
    for without, fused in (((), True), (("fuse-elementwise",), False)):
        module = parse_text(context(), TEXT)
        run_passes(context(), module, parse_passes(passes_between("imported", "fused", without=without)))
        assert any(op.name == "ait.fused_elementwise" for op in module.walk()) == fused
