"""Random inputs and parameters, and the dims that are tried."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.passes.checks.check_semantics import SemanticsChecker, named_inputs
from ait_mlir.passes.pipelines import passes_between
from ait_mlir.reference.sampling import index_bound, kernels_around, reduced_maximum, works
from tests.lit.runner import run_ait_opt

TEXT = """
ait.graph @g(%ids: !ait.tensor<b x s x i64>, %kinds: !ait.tensor<b x s x i32>, %n: !ait.tensor<i64>)
    dims {b = 1 to 64, s = 1 to 512} {
  %words = ait.param "words" : !ait.tensor<100 x 8 x f16>
  %types = ait.param "types" : !ait.tensor<2 x 8 x f16>
  %w = ait.param "w" : !ait.tensor<16 x 8 x f16>
  %turned = ait.permute %ids [1, 0] : !ait.tensor<s x b x i64>
  %twice = ait.add %ids, %ids : !ait.tensor<b x s x i64>
  %0 = ait.embedding %words, %turned : !ait.tensor<s x b x 8 x f16>
  %1 = ait.embedding %types, %kinds : !ait.tensor<b x s x 8 x f16>
  %2 = ait.embedding %words, %twice : !ait.tensor<b x s x 8 x f16>
  %3 = ait.add %1, %2 : !ait.tensor<b x s x 8 x f16>
  %4 = ait.gemm rcr %3, %w : !ait.tensor<b x s x 16 x f16>
  %5 = ait.permute %0 [1, 0, 2] : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %4 : !ait.tensor<b x s x 16 x f16>
  ait.output "z" %5 : !ait.tensor<b x s x 8 x f16>
  ait.output "n" %n : !ait.tensor<i64>
}
"""


def graph() -> GraphOp:
    module = parse_text(context(), TEXT)
    op = module.body.block.first_op
    assert isinstance(op, GraphOp)
    return op


def program() -> ProgramOp:
    outcome = run_ait_opt(["-", "-p", passes_between("imported", "planned", "cpu")], TEXT)
    assert outcome.code == 0, outcome.stderr
    module = parse_text(context(), outcome.stdout)
    return next(op for op in module.ops if isinstance(op, ProgramOp))


def test_indices_stay_in_the_tables() -> None:
    """Directly as many as there are rows, after arithmetic a quarter, and a few where nothing is looked up."""
    assert {name: index_bound(value) for name, value in graph().inputs()} == {"ids": 25, "kinds": 2, "n": 8}
    assert {name: index_bound(value) for name, value in named_inputs(program())}["kinds"] == 2


def total_work(root: Operation, dims: Mapping[str, int]) -> int:
    """The work of all ops in a graph, or of all launches of a program."""
    return sum(work.evaluate(dims) for work in works(root.regions[0].block, kernels_around(root)))


def test_the_maximum_is_reduced_to_the_budget() -> None:
    g = graph()
    assert reduced_maximum(g, g.scope, 1 << 40) == {"b": 64, "s": 512}
    small = reduced_maximum(g, g.scope, 10**6)
    assert total_work(g, small) <= 10**6 and small["b"] > 1 and small["s"] > 1
    assert reduced_maximum(g, g.scope, 0) == {"b": 1, "s": 1}


def test_a_program_takes_as_much_work_as_its_graph() -> None:
    dims = {"b": 8, "s": 32}
    assert 0.5 < total_work(program(), dims) / total_work(graph(), dims) < 2


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second = (SemanticsChecker(parse_text(context(), TEXT), seed, 1) for seed in (3, 3))
    other = SemanticsChecker(parse_text(context(), TEXT), 4, 1)
    assert (first.params["words"] == second.params["words"]).all()
    assert (first.params["words"] != other.params["words"]).any()
    dims = {"b": 2, "s": 3}
    assert (first.inputs(graph(), dims)["ids"] == second.inputs(graph(), dims)["ids"]).all()
    assert first.params["words"].dtype == np.float16
