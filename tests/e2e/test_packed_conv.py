"""Convolutions on the CPU whose weights lie in panels: which are chosen, and their results on both units."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait_rt.buffers import ConstantOp
from ait_mlir.dialects.ait_rt.program import KernelOp
from tests.e2e.support import Compiled, compile_graph

FORMS = (  # x, weight, result, clauses
    ("b x h x 13 x 16", "64 x 3 x 5 x 16", "b x h x 13 x 64", "pad [1, 2]"),
    ("b x h x 17 x 3", "50 x 7 x 7 x 3", "b x (h ceildiv 2) x 9 x 50", "stride [2, 2] pad [3, 3]"),
    ("b x h x 12 x 40", "130 x 3 x 2 x 40", "b x h x 10 x 130", "pad [2, 0, 2, 1] dilation [2, 3]"),
    ("b x h x 6 x 150", "33 x 3 x 3 x 150", "b x h x 3 x 33", "stride [1, 2] pad [1, 1]"),
    ("b x h x 6", "10 x 3 x 6", "b x (h ceildiv 2) x 10", "stride [2] pad [1]"),
    ("b x h x 5 x 6", "8 x 4 x 3 x 6", "b x (2*h) x 9 x 8", "transposed stride [2, 2] pad [1, 1]"),
    ("b x 3 x h x 4 x 5", "16 x 3 x 2 x 3 x 5", "b x 2 x h x 2 x 16", "stride [2, 1, 2] pad [1, 0, 1, 1, 1, 0]"),
)
EPILOGUE = """ epilogue(%e{i}, %r{i}) {{
  ^bb0(%acc: {t}, %0: {t}, %1: {t}):
    %s = ait.add %acc, %0 : {t}
    %g = ait.relu %s : {t}
    %y = ait.add %1, %g : {t}
    ait.yield %y : {t}
  }}"""


def one(i: int, t: str, x: str, weight: str, result: str, clauses: str, epilogue: bool) -> tuple[str, str]:
    """Inputs and a convolution with a weight of its own."""
    text = f'  %w{i} = ait.param "w{i}" : !ait.tensor<{weight} x {t}>\n'
    inputs, after = f"%x{i}: !ait.tensor<{x} x {t}>", ""
    if epilogue:
        text += f'  %e{i} = ait.param "e{i}" : !ait.tensor<{weight.split(" x ")[0]} x {t}>\n'
        inputs += f", %r{i}: !ait.tensor<{result} x {t}>"
        after = EPILOGUE.format(i=i, t="f64" if t == "f64" else "f32")
    text += f"  %y{i} = ait.conv %x{i}, %w{i} {clauses}{after} : !ait.tensor<{result} x {t}>\n"
    return inputs, text + f'  ait.output "y{i}" %y{i} : !ait.tensor<{result} x {t}>\n'


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    made = [
        one(i, ("f32", "f16", "f32", "f64", "bf16", "f16", "f32")[i], *form, i % 2 == 0) for i, form in enumerate(FORMS)
    ]
    text = "\n".join(body for _, body in made)
    first = "  %c = ait.permute %n [0, 2, 3, 1] : !ait.tensor<b x h x 9 x 3 x f32>\n" + one(
        9, "f32", "b x h x 9 x 3", "20 x 3 x 3 x 3", "b x h x 9 x 20", "pad [1, 1]", False
    )[1].replace("%x9", "%c")
    inputs = ", ".join([*(i for i, _ in made), "%n: !ait.tensor<b x 3 x h x 9 x f32>"])
    graph = f"ait.graph @g({inputs}) dims {{b = 0 to 4, h = 1 to 100}} {{\n{text}{first}}}\n"
    return compile_graph(graph, tmp_path_factory.mktemp("convolutions"))


def test_every_weight_lies_in_panels(convolutions: Compiled) -> None:
    weights = [op for op in convolutions.planned.walk() if isinstance(op, ConstantOp) and op.buffer_type.rank > 2]
    assert len(weights) == len(FORMS) + 1
    assert [op.param_names() for op in weights if op.panels is None] == []
    kernels = [op for op in convolutions.planned.walk() if isinstance(op, KernelOp)]
    assert sum(op.provider.data == "packed" for op in kernels) >= len(FORMS)


@pytest.mark.usefixtures("unit")
@pytest.mark.parametrize(("b", "h"), [(0, 5), (1, 1), (1, 7), (2, 33), (1, 100)])
def test_results(convolutions: Compiled, b: int, h: int) -> None:
    assert convolutions.problems({"b": b, "h": h}) == []


@pytest.mark.usefixtures("unit")
def test_infinities_and_nan(convolutions: Compiled) -> None:
    assert convolutions.problems({"b": 1, "h": 9}, special=True) == []


def test_groups_and_inputs_as_weights_keep_their_kernel(tmp_path_factory: pytest.TempPathFactory) -> None:
    text = """ait.graph @g(%x: !ait.tensor<b x 7 x 7 x 8 x f32>, %v: !ait.tensor<4 x 3 x 3 x 8 x f32>) dims {b = 1 to 3} {
  %w = ait.param "w" : !ait.tensor<4 x 3 x 3 x 4 x f32>
  %0 = ait.conv %x, %w groups 2 : !ait.tensor<b x 5 x 5 x 4 x f32>
  %1 = ait.conv %x, %v : !ait.tensor<b x 5 x 5 x 4 x f32>
  ait.output "a" %0 : !ait.tensor<b x 5 x 5 x 4 x f32>
  ait.output "b" %1 : !ait.tensor<b x 5 x 5 x 4 x f32>
}
"""
    compiled = compile_graph(text, tmp_path_factory.mktemp("others"))
    assert {op.provider.data for op in compiled.planned.walk() if isinstance(op, KernelOp)} == {"native"}
    assert compiled.problems({"b": 2}) == []
