"""Convolutions on the CPU whose strips of rows are gathered while they are packed: groups, and weights that are inputs."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.lowering.kernels import Target
from tests.e2e.support import Compiled, compile_graph

FORMS = (  # type, x, weight, result, clauses
    ("f32", "b x h x 7 x 48", "48 x 3 x 3 x 12", "b x h x 7 x 48", "pad [1, 1] groups 4"),
    ("f16", "b x h x 9 x 34", "10 x 3 x 2 x 17", "b x (h ceildiv 2) x 8 x 10", "stride [2, 1] pad [1, 0] groups 2"),
    ("bf16", "b x h x 5 x 96", "9 x 1 x 3 x 32", "b x h x 5 x 9", "pad [0, 2] dilation [1, 2] groups 3"),
    ("f32", "b x h x 5 x 12", "8 x 4 x 3 x 6", "b x (2*h) x 9 x 8", "transposed stride [2, 2] pad [1, 1] groups 2"),
    ("f64", "b x h x 22", "4 x 3 x 11", "b x h x 4", "pad [1] groups 2"),
)


def graph(forms: tuple[tuple[str, ...], ...]) -> str:
    """A convolution of each form, every second one with its weight as an input, and one of an input whose channels are not last."""
    inputs, body = ["%n: !ait.tensor<b x 40 x h x 6 x f32>"], ""
    for i, (t, x, weight, result, clauses) in enumerate(forms):
        inputs.append(f"%x{i}: !ait.tensor<{x} x {t}>")
        if i % 2:
            body += f'  %w{i} = ait.param "w{i}" : !ait.tensor<{weight} x {t}>\n'
        else:
            inputs.append(f"%w{i}: !ait.tensor<{weight} x {t}>")
        body += f"  %y{i} = ait.conv %x{i}, %w{i} {clauses} : !ait.tensor<{result} x {t}>\n"
        body += f'  ait.output "y{i}" %y{i} : !ait.tensor<{result} x {t}>\n'
    body += """  %nhwc = ait.permute %n [0, 2, 3, 1] : !ait.tensor<b x h x 6 x 40 x f32>
  %v = ait.param "v" : !ait.tensor<4 x 3 x 3 x 20 x f32>
  %z = ait.conv %nhwc, %v pad [1, 1] groups 2 : !ait.tensor<b x h x 6 x 4 x f32>
  ait.output "z" %z : !ait.tensor<b x h x 6 x 4 x f32>
"""
    return f"ait.graph @g({', '.join(inputs)}) dims {{b = 0 to 4, h = 1 to 60}} {{\n{body}}}\n"


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(graph(FORMS[:1]), tmp_path_factory.mktemp("gathered"))


def test_they_are_gathered(convolutions: Compiled) -> None:
    kernels = [op for op in convolutions.planned.walk() if isinstance(op, KernelOp)]
    assert {op.provider.data for op in kernels} == {"native"}


@pytest.mark.parametrize(("b", "h"), [(0, 5), (1, 1), (1, 6), (3, 33)])
def test_results(convolutions: Compiled, b: int, h: int) -> None:
    assert convolutions.problems({"b": b, "h": h}) == []


def test_infinities_and_nan(convolutions: Compiled) -> None:
    assert convolutions.problems({"b": 2, "h": 9}, special=True) == []


@pytest.mark.full
@pytest.mark.parametrize("arch", ["x86-64", "x86-64-v3", "native"])
def test_all_forms(tmp_path_factory: pytest.TempPathFactory, arch: str) -> None:
    compiled = compile_graph(graph(FORMS), tmp_path_factory.mktemp(arch), target=Target("cpu", arch))
    assert compiled.problems({"b": 3, "h": 9}) == []
    assert compiled.problems({"b": 2, "h": 9}, special=True) == []
