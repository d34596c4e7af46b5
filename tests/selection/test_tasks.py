"""What belongs to a task: the views around an op, and the concatenation that its result is a piece of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ait_mlir.dialects.ait.scan import tensor_ops
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import passes_between
from ait_mlir.selection.select import needs_kernel
from ait_mlir.selection.tasks import make_task, surroundings
from tests.generator import random_graph
from tests.selection.cards import tasks_of

TEXT = """
ait.graph @g(%x: !ait.tensor<batch x 196 x 64 x f16>, %c: !ait.tensor<PIECE x f16>) dims {batch = 1 to 64} {
  %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<batch x 196 x 64 x f16>
  %1 = ait.concat %c, %0 dim DIM : !ait.tensor<WHOLE x f16>
  ait.output "y" %1 : !ait.tensor<WHOLE x f16>
}
"""
PIECES = {
    0: ("7 x 196 x 64", "(batch + 7) x 196 x 64"),
    1: ("batch x 1 x 64", "batch x 197 x 64"),
    2: ("batch x 196 x 8", "batch x 196 x 72"),
}


def concat(dim: int) -> str:
    piece, whole = PIECES[dim]
    return TEXT.replace("PIECE", piece).replace("WHOLE", whole).replace("DIM", str(dim))


def typed(shape: str) -> list[int | str]:
    return [int(d) if d.isdecimal() else d.replace("batch", "d0") for d in shape.split(" x ")] + ["f16"]


@pytest.mark.parametrize("dim", [1, 2])
def test_the_concatenation_is_part_of_the_task_whose_result_lies_in_it(dim: int):
    """A kernel sees batches of 196 rows there, which are none of a matrix of its own."""
    (task,) = (t for t in tasks_of(concat(dim)) if t.op.name == "ait.gemm")
    (_, piece), ops = json.loads(task.key)
    *_, concat_op, output = ops
    assert piece == typed(PIECES[dim][0]) and concat_op[0] == "ait.concat" and concat_op[3] == [typed(PIECES[dim][1])]
    assert concat_op[1] == {"dim": f"{dim} : i64"} and output[:3] == ["ait.output", {"output_name": '"y0"'}, [4]]


def test_what_the_result_is_contiguous_in_is_not():
    (task,) = (t for t in tasks_of(concat(0)) if t.op.name == "ait.gemm")
    assert "concat" not in task.key and len(json.loads(task.key)[0]) == 1


def test_a_result_that_has_another_use_is_not_a_piece():
    text = concat(1).replace("\n}\n", '\n  ait.output "z" %0 : !ait.tensor<batch x 196 x 64 x f16>\n}\n')
    (task,) = (t for t in tasks_of(text) if t.op.name == "ait.gemm")
    assert "concat" not in task.key


def test_a_piece_beside_a_larger_one_is_a_task_of_its_own():
    """The time of the copy would hide the differences."""
    text = concat(1).replace(" x 197 x 64", " x 393 x 64").replace(" x 1 x 64", " x 197 x 64")
    (task,) = (t for t in tasks_of(text) if t.op.name == "ait.gemm")
    assert "concat" not in task.key


def test_one_batch_is_a_case_of_many():
    """Times of a task with dims are found for a task that has numbers, 1 among them."""
    (many,) = (t for t in tasks_of(concat(1)) if t.op.name == "ait.gemm")
    text = concat(1).replace(" dims {batch = 1 to 64}", "").replace("batch", "1")
    (one,) = (t for t in tasks_of(text) if t.op.name == "ait.gemm")
    assert one.key == many.key_at((1,)) and "concat" in one.key


STRIDES = """
ait.graph @g(%x: !ait.tensor<batch x 64 x f16> STRIDES) dims {batch = 1 to 64, pitch = 64 to 512} {
  %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
  %0 = ait.reshape %x : !ait.tensor<batch x 1 x 64 x f16>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<batch x 1 x 64 x f16>
  ait.output "y" %1 : !ait.tensor<batch x 1 x 64 x f16>
}
"""


def test_strides_of_an_input_are_part_of_the_task() -> None:
    (plain,), (wide,), (other,), (fixed,) = (
        tasks_of(STRIDES.replace("STRIDES", strides))
        for strides in ("", "strides [pitch, 1]", "strides [8*pitch, 1]", "strides [128, 1]")
    )
    assert len({t.key for t in (plain, wide, other, fixed)}) == 4
    assert [d.name for d in plain.scope.dims] == ["batch"] and [d.name for d in wide.scope.dims] == ["batch", "pitch"]
    assert json.loads(wide.key)[2] == {"0": ["d1", 1]} and len(json.loads(plain.key)) == 2
    assert wide.key_at((3, 128)) == fixed.key_at((3,)) and wide.key_at((3, 128)) != plain.key_at((3,))
    assert "strides [128, 1]" in str(wide.at((3, 128)).parent_op())
    kept = surroundings(next(op for op in wide.graph.block.ops if op.name == "ait.gemm")).task()
    assert kept.key == wide.key


def test_surroundings_that_are_alike_have_one_task():
    """Their keys stand for the keys of the tasks, ranges of dims among them."""
    files = [p.read_text() for p in (Path(__file__).parents[2] / "examples").glob("*.mlir")]
    alike = 0
    for text in (*files, *map(random_graph, range(20))):
        ctx = context()
        module = parse_text(ctx, text)
        for passes in ("", passes_between("imported", "fused", "cuda")):
            run_passes(ctx, module, parse_passes(passes))
            found: dict[object, tuple[str, str]] = {}
            for op in (op for graph in module.ops for op in tensor_ops(graph.regions[0].block) if needs_kernel(op)):
                key, task = surroundings(op).key(), make_task(op)
                alike += key in found
                assert found.setdefault(key, (task.key, str(task.scope))) == (task.key, str(task.scope))
    assert alike > 5, alike


NEST = """
ait.graph @g(%x: !ait.tensor<rows x 12 x f16>) dims {rows = 2 to 64} {
  %y = ait.loops(%x) for (r = 2*rows) {
  ^bb0(%a: !ait.tensor<rows x 12 x f16>):
    %s = ait.fold add for (k = 12) {
      %v = ait.at %a[min(r, rows - 1), k] : f32
      ait.yield %v : f32
    } : f32
    %i = ait.index (r - rows) : i64
    %f = ait.cast %i : f32
    %t = ait.add %s, %f : f32
    ait.yield %t : f32
  } : !ait.tensor<(2*rows) x f16>
  ait.output "y" %y : !ait.tensor<(2*rows) x f16>
}
"""


def test_loops_have_one_key_whatever_their_dims_are_called():
    (task,) = tasks_of(NEST)
    renamed = NEST.replace("rows", "batch").replace("r,", "j,").replace("r =", "j =").replace("(r -", "(j -")
    (other,) = tasks_of(renamed.replace("k =", "c =").replace("k]", "c]"))
    (less,) = tasks_of(NEST.replace("rows - 1)", "rows - 2)"))
    assert task.key == other.key != less.key


def test_loops_at_a_point_have_its_numbers_in_their_region():
    (task,) = tasks_of(NEST)
    op = task.at((5,))
    op.verify()
    text = str(op)
    assert "for (r = 10)" in text and "min(4, r)" in text and "(r - 5)" in text
    assert "rows" not in text and "tensor<5 x 12 x f16>" in text
