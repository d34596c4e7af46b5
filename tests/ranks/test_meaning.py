"""The reference runs a graph or program on all ranks of a mesh, one op after the other."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dialects.sdy import Mesh
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.reference import EvaluationError, evaluate_graph, run_program
from ait_mlir.reference.core import Array

MESH = '<["dp"=2, "tp"=2]>'
X = np.arange(4 * 8 * 4, dtype=np.float64).reshape(4, 8, 4) % 7
"""The pieces of four ranks, one after the other along the first dim."""


def test_groups_of_a_mesh() -> None:
    mesh = Mesh((("dp", 2), ("tp", 3)))
    assert mesh.size == 6 and mesh.places(4) == {"dp": 1, "tp": 1}
    assert mesh.group(4, ["tp"]) == [3, 4, 5] and mesh.group(4, ["dp"]) == [1, 4]
    assert mesh.group(4, ["dp", "tp"]) == [0, 1, 2, 3, 4, 5]
    assert mesh.group(4, ["tp", "dp"]) == [0, 3, 1, 4, 2, 5]
    assert [mesh.index(rank, ["tp", "dp"]) for rank in range(6)] == [0, 2, 4, 1, 3, 5]


def on_ranks(op: str, result: str) -> Array:
    """The results of all ranks, joined along the first dim, of an op on `X`."""
    text = f"""
ait.graph @g(%x: !ait.tensor<1 x 8 x 4 x f64>) ranks {{mesh = #sdy.mesh{MESH},
    inputs = {{x = #sdy.sharding<@m, [{{"dp", "tp"}}, {{}}, {{}}]>}},
    outputs = {{y = #sdy.sharding<@m, [{{"dp", "tp"}}, {{}}, {{}}]>}}}} {{
  %0 = ait.reshape %x : !ait.tensor<8 x 4 x f64>
  %1 = ait.{op} of {MESH} : !ait.tensor<{result} x f64>
  %2 = ait.reshape %1 : !ait.tensor<1 x {result} x f64>
  ait.output "y" %2 : !ait.tensor<1 x {result} x f64>
}}"""
    module = parse_text(context(), text)
    return evaluate_graph(next(iter(module.ops)), {"x": X}, {}, {})["y"]


PAIR_SUMS = [X[0] + X[1]] * 2 + [X[2] + X[3]] * 2
ACROSS = np.maximum(X[0], X[2]), np.maximum(X[1], X[3])


@pytest.mark.parametrize(
    ("op", "result", "expected"),
    [
        ('all_reduce sum %0 over ["tp"]', "8 x 4", PAIR_SUMS),
        ('all_reduce max %0 over ["dp"]', "8 x 4", [*ACROSS, *ACROSS]),
        ('all_gather %0 dim 1 over ["dp"]', "8 x 8", [np.concatenate(X[[i, i + 2]], 1) for i in (0, 1, 0, 1)]),
        ('all_gather %0 dim 0 over ["tp", "dp"]', "32 x 4", [np.concatenate(X[[0, 2, 1, 3]])] * 4),
        ('reduce_scatter sum %0 dim 0 over ["tp"]', "4 x 4", [PAIR_SUMS[i][4 * (i % 2) :][:4] for i in range(4)]),
        (
            'all_to_all %0 split 0 concat 1 over ["tp"]',
            "4 x 8",
            [np.concatenate([X[i - i % 2 + j][4 * (i % 2) :][:4] for j in (0, 1)], 1) for i in range(4)],
        ),
        ('broadcast %0 root 1 over ["dp"]', "8 x 4", X[[2, 3, 2, 3]]),
        (
            'collective_permute %0 [0 -> 1, 1 -> 3, 2 -> 2] over ["dp", "tp"]',
            "8 x 4",
            [np.zeros_like(X[0]), X[0], X[2], X[1]],
        ),
        ('collective_permute %0 [1 -> 0] over ["dp"]', "8 x 4", [X[2], X[3], *np.zeros_like(X[:2])]),
        ('all_slice %0 dim 0 over ["dp", "tp"]', "2 x 4", [X[i][2 * i :][:2] for i in range(4)]),
    ],
)
def test_each_rank_gets_its_result(op: str, result: str, expected: list[Array]) -> None:
    np.testing.assert_array_equal(on_ranks(op, result), np.stack(list(expected)))


COLUMNS = """
ait.graph @g(%x: !ait.tensor<b x 4 x f32>) dims {{b = 1 to 4}} ranks {{mesh = #sdy.mesh<["tp"=2]>,
    params = {{w = #sdy.sharding<@m, [{{}}, {{"tp"}}]>}}, inputs = {{x = #sdy.sharding<@m, [{{}}, {{"tp"}}]>}}}} {{
  %w = ait.param "w" : !ait.tensor<6 x 4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x f32>
  %1 = {first} : !ait.tensor<b x 6 x f32>
  %2 = {second} : !ait.tensor<b x 6 x f32>
  ait.output "y" %2 : !ait.tensor<b x 6 x f32>
}}"""
SUM = 'ait.all_reduce sum {} over ["tp"] of <["tp"=2]>'
PROGRAM = """
ait_rt.kernel @gemm "native" {} (%a: !ait.tensor<b x 4 x f32>, %b: !ait.tensor<6 x 4 x f32>) dims {b = 1 to 4} {
  %0 = ait.gemm rcr %a, %b : !ait.tensor<b x 6 x f32>
  ait_rt.return %0 : !ait.tensor<b x 6 x f32>
}
ait_rt.kernel @sum "native" {} (%a: !ait.tensor<b x 6 x f32>) dims {b = 1 to 4} {
  %0 = ait.all_reduce sum %a over ["tp"] of <["tp"=2]> : !ait.tensor<b x 6 x f32>
  ait_rt.return %0 : !ait.tensor<b x 6 x f32>
}
ait_rt.program @g dims {b = 1 to 4} arena (24*b) ranks {mesh = #sdy.mesh<["tp"=2]>,
    params = {w = #sdy.sharding<@m, [{}, {"tp"}]>}, inputs = {x = #sdy.sharding<@m, [{}, {"tp"}]>}} {
  %x = ait_rt.input "x" : !ait_rt.buffer<b x 4 x f32>
  %y = ait_rt.output "y" : !ait_rt.buffer<b x 6 x f32>
  %w = ait_rt.constant ["w"] : !ait_rt.buffer<6 x 4 x f32>
  %p = ait_rt.alloc at (0) : !ait_rt.buffer<b x 6 x f32>
  ait_rt.launch @gemm ins(%x, %w) outs(%p) workspace() stream 0
  ait_rt.launch @sum ins(%p) outs(%y) workspace() stream 0
}"""
GIVEN = {"x": np.random.default_rng(0).standard_normal((3, 8)), "w": np.random.default_rng(1).standard_normal((6, 8))}


def columns(first: str, second: str) -> ModuleOp:
    """A product with the columns of x and w on two ranks, and two ops behind it."""
    return parse_text(context(), COLUMNS.format(first=first, second=second))


def value(module: ModuleOp) -> Array:
    return evaluate_graph(cast(GraphOp, next(iter(module.ops))), GIVEN, GIVEN, {"b": 3})["y"]


def test_whole_tensors_are_given_and_returned() -> None:
    found = value(columns(SUM.format("%0"), "ait.relu %1"))
    np.testing.assert_allclose(found, np.maximum(GIVEN["x"] @ GIVEN["w"].T, 0), rtol=1e-12)


def test_a_program_runs_on_all_ranks() -> None:
    module = parse_text(context(), PROGRAM)
    program = next(op for op in module.ops if isinstance(op, ProgramOp))
    found = run_program(module, program, GIVEN, GIVEN, {"b": 3}, exact=True, strict=True)["y"]
    np.testing.assert_allclose(found, GIVEN["x"] @ GIVEN["w"].T, rtol=1e-12)


def test_a_collective_on_one_rank_of_several_is_refused() -> None:
    module = parse_text(context(), PROGRAM)
    program = next(op for op in module.ops if isinstance(op, ProgramOp))
    del program.properties["ranks"]
    with pytest.raises(EvaluationError, match=r"ait.all_reduce needs the 2 ranks of <\[\"tp\"=2\]>, got 1"):
        run_program(module, program, {"x": GIVEN["x"][:, :4]}, {"w": GIVEN["w"][:, :4]}, {"b": 3})


def test_an_output_that_differs_between_ranks_needs_a_sharding() -> None:
    with pytest.raises(EvaluationError, match="output 'y' of rank 0 differs from that of another rank"):
        value(columns("ait.relu %0", "ait.neg %1"))


def test_an_op_that_crosses_a_sum_over_ranks_is_found() -> None:
    """A function of a sum is not the sum of the function; the checker runs all ranks."""
    checker = SemanticsChecker(columns(SUM.format("%0"), "ait.relu %1"))
    assert any("output 'y'" in str(d) for d in checker.after("wrong", columns("ait.relu %0", SUM.format("%1"))))
    doubled = SemanticsChecker(columns(SUM.format("%0"), "ait.add %1, %1"))
    assert not doubled.after("right", columns("ait.add %0, %0", SUM.format("%1"))) and doubled.checks
