"""Attention in f32 as two products with a softmax between them: its value, and which attention is cut."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.candidates import Candidate, cut_in_place, steps_of
from ait_mlir.lowering.kernels import cuts_of
from ait_mlir.lowering.module_target import make_target
from ait_mlir.reference import evaluate_graph

HOPPER = make_target("cuda", "sm_90a")
TEXT = """ait.graph @g(%q: !ait.tensor<b x 2 x s x 4 x T>, %k: !ait.tensor<b x H x 5 x 4 x T>, %v: !ait.tensor<b x H x 5 x 3 x T>,
    %m: !ait.tensor<s x 5 x T>) dims {b = 0 to 3, s = 0 to 1000} {
  %0 = ait.attention %q, %k, %v OPTIONS : !ait.tensor<b x 2 x s x 3 x T>
  ait.output "y" %0 : !ait.tensor<b x 2 x s x 3 x T>
}
"""


def graph_of(
    options: str = "scale 0.25", kind: str = "f32", heads: int = 2, columns: str = "5"
) -> tuple[GraphOp, AttentionOp]:
    text = (
        TEXT.replace("OPTIONS", options).replace("x T>", f"x {kind}>").replace("x H x 5 x", f"x {heads} x {columns} x")
    )
    module = parse_text(context(), text)
    check(module, SourceText("test.mlir", text))
    (graph,) = (op for op in module.ops if isinstance(op, GraphOp))
    (op,) = (op for op in graph.block.ops if isinstance(op, AttentionOp))
    return graph, op


def places(op: Operation, target: object = HOPPER) -> list[int]:
    (cut,) = cuts_of(type(op))
    return list(cut.places(op, target))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("b", "s"), [(0, 3), (2, 0), (1, 1), (3, 7)])
def test_the_parts_compute_the_same(b: int, s: int):
    graph, op = graph_of()
    random = np.random.default_rng(0)
    shapes = {"q": (b, 2, s, 4), "k": (b, 2, 5, 4), "v": (b, 2, 5, 3), "m": (s, 5)}
    inputs = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    dims = {"b": b, "s": s}
    whole = evaluate_graph(graph, inputs, {}, dims)["y"]
    parts = cut_in_place(op, "products")
    assert [part.name for part in parts] == ["ait.fused_elementwise", "ait.bmm", "ait.softmax", "ait.bmm"]
    graph.verify()
    np.testing.assert_allclose(evaluate_graph(graph, inputs, {}, dims)["y"], whole, rtol=1e-12)


def test_each_part_has_a_kernel():
    _, op = graph_of()
    assert places(op) == [0]
    names = [("native", {}), ("cublaslt", {}), ("native", {}), ("cublaslt", {})]
    steps = steps_of(op, Candidate.of("products", names), HOPPER)
    assert [step.kernel.provider for step in steps] == [name for name, _ in names]


@pytest.mark.parametrize(
    "options",
    [
        "scale 0.25 causal",
        "scale 0.25 window 2",
        "mask %m scale 0.25",
        "then %k, %v scale 0.25",
        "scale 0.25 no_softmax",
        "scale 0.25 scores() {\n  ^bb0(%x: f32):\n    %t = ait.tanh %x : f32\n    ait.yield %t : f32\n  }",
    ],
)
def test_other_attention_is_not_cut(options: str):
    _, op = graph_of(options)
    (cut,) = cuts_of(AttentionOp)
    assert places(op) == [] and cut.parts(op, 0) is None


def test_types_heads_sizes_and_targets_that_are_not_cut():
    assert places(graph_of(kind="f16")[1]) == []
    assert places(graph_of(heads=1)[1]) == []
    assert places(graph_of(columns="50000")[1]) == [], "1.2 GB of scores"
    assert places(graph_of()[1], make_target("cpu", "")) == []
    assert places(graph_of()[1], make_target("cuda", "sm_90a", precision="high")) == []
