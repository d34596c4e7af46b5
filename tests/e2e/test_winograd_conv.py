"""Convolutions of 3 x 3 by Winograd's method: which take it, and their results on every kind of vector unit."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait_rt.buffers import ConstantOp
from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.driver import run_to_phase
from ait_mlir.lowering.kernels import Target
from ait_mlir.options import CompileOptions
from tests.e2e.support import Compiled, compile_graph, parse_graph

PINNED = '{kernel = #ait.kernel<"winograd", {}>}'
FORMS = (  # type, x, weight, result, clauses
    ("f32", "b x h x 13 x 16", "64 x 3 x 3 x 16", "b x h x 13 x 64", "pad [1, 1]"),
    ("f16", "b x h x 9 x 5", "1 x 3 x 3 x 5", "b x h x 7 x 1", "pad [1, 0]"),
    ("f32", "b x h x 6 x 210", "33 x 3 x 3 x 210", "b x (h + 2) x 8 x 33", "pad [2, 2]"),
    ("bf16", "b x h x 8 x 33", "100 x 3 x 3 x 33", "b x h x 8 x 100", "pad [1, 1]"),
)
EPILOGUE = """ epilogue(%e{i}, %r{i}) {{
  ^bb0(%acc: f32, %0: f32, %1: f32):
    %s = ait.add %acc, %0 : f32
    %g = ait.relu %s : f32
    %y = ait.add %1, %g : f32
    ait.yield %y : f32
  }}"""


def graph(forms: tuple[tuple[str, ...], ...]) -> str:
    """A convolution of each form, every second one with an epilogue; one of an input whose channels are not last; and
    one of a weight that two params make up."""
    inputs, body = ["%n: !ait.tensor<b x 32 x h x 10 x f32>"], ""
    for i, (t, x, weight, result, clauses) in enumerate(forms):
        inputs.append(f"%x{i}: !ait.tensor<{x} x {t}>")
        body += f'  %w{i} = ait.param "w{i}" : !ait.tensor<{weight} x {t}>\n'
        after = ""
        if i % 2 == 0:
            body += f'  %e{i} = ait.param "e{i}" : !ait.tensor<{weight.split(" x ")[0]} x {t}>\n'
            inputs.append(f"%r{i}: !ait.tensor<{result} x {t}>")
            after = EPILOGUE.format(i=i)
        body += f"  %y{i} = ait.conv %x{i}, %w{i} {clauses}{after} {PINNED} : !ait.tensor<{result} x {t}>\n"
        body += f'  ait.output "y{i}" %y{i} : !ait.tensor<{result} x {t}>\n'
    body += f"""  %nhwc = ait.permute %n [0, 2, 3, 1] : !ait.tensor<b x h x 10 x 32 x f32>
  %v = ait.param "v" : !ait.tensor<20 x 3 x 3 x 32 x f32>
  %u = ait.param "u" : !ait.tensor<40 x 3 x 3 x 32 x f32>
  %vu = ait.concat %v, %u dim 0 : !ait.tensor<60 x 3 x 3 x 32 x f32>
  %z = ait.conv %nhwc, %vu pad [1, 1] {PINNED} : !ait.tensor<b x h x 10 x 60 x f32>
  ait.output "z" %z : !ait.tensor<b x h x 10 x 60 x f32>
"""
    return f"ait.graph @g({', '.join(inputs)}) dims {{b = 0 to 4, h = 1 to 100}} {{\n{body}}}\n"


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(graph(FORMS[:2]), tmp_path_factory.mktemp("winograd"))


def test_weights_are_transformed(convolutions: Compiled) -> None:
    weights = [op for op in convolutions.planned.walk() if isinstance(op, ConstantOp) and op.buffer_type.rank == 4]
    assert len(weights) == 3
    assert {None if op.panels is None else op.panels.data for op in weights} == {"winograd"}


@pytest.mark.parametrize(("b", "h"), [(0, 5), (1, 1), (1, 7), (3, 34), (1, 100)])
def test_results(convolutions: Compiled, b: int, h: int) -> None:
    assert convolutions.problems({"b": b, "h": h}) == []


def test_infinities_and_nan(convolutions: Compiled) -> None:
    assert convolutions.problems({"b": 1, "h": 9}, special=True) == []


@pytest.mark.full
@pytest.mark.parametrize("arch", ["x86-64", "x86-64-v3", "native"])
def test_all_forms(tmp_path_factory: pytest.TempPathFactory, arch: str) -> None:
    compiled = compile_graph(graph(FORMS), tmp_path_factory.mktemp(arch), target=Target("cpu", arch))
    assert compiled.problems({"b": 3, "h": 9}) == []
    assert compiled.problems({"b": 1, "h": 9}, special=True) == []


def providers(x: str, weight: str, clauses: str, result: str, t: str = "f32", param: bool = True) -> set[str]:
    """The kernels of a convolution with these types."""
    given = f'  %w = ait.param "w" : !ait.tensor<{weight} x {t}>\n' if param else ""
    more = "" if param else f", %w: !ait.tensor<{weight} x {t}>"
    text = f"""ait.graph @g(%x: !ait.tensor<{x} x {t}>{more}) dims {{b = 1 to 8 hints [4]}} {{
{given}  %y = ait.conv %x, %w {clauses} : !ait.tensor<{result} x {t}>
  ait.output "y" %y : !ait.tensor<{result} x {t}>
}}
"""
    planned = parse_graph(text)[0]
    run_to_phase(planned, "planned", CompileOptions("cpu", "x86-64-v3"))
    return {op.provider.data for op in planned.walk() if isinstance(op, KernelOp)}


X, W, Y = "b x 28 x 28 x 64", "64 x 3 x 3 x 64", "b x 28 x 28 x 64"


@pytest.mark.parametrize("t", ["f32", "f16", "bf16"])
def test_windows_of_3_x_3_take_it(t: str) -> None:
    assert providers(X, W, "pad [1, 1]", Y, t) == {"winograd"}


@pytest.mark.parametrize(
    "case",
    [
        (X, W, "stride [2, 2] pad [1, 1]", "b x 14 x 14 x 64"),
        (X, W, "pad [2, 2] dilation [2, 2]", Y),
        (X, "64 x 3 x 1 x 64", "pad [1, 0]", Y),
        (X, "64 x 5 x 5 x 64", "pad [2, 2]", Y),
        (X, "64 x 3 x 3 x 32", "pad [1, 1] groups 2", Y),
        (X, W, "transposed pad [1, 1]", Y),
        (X, W, "pad [1, 1]", Y, "f64"),
        (X, W, "pad [1, 1]", Y, "f32", False),
        ("b x 28 x 64", "64 x 3 x 64", "pad [1]", "b x 28 x 64"),
        ("1 x 2 x 2 x 256", "256 x 3 x 3 x 256", "pad [1, 1]", "1 x 2 x 2 x 256"),
        ("b x 28 x 28 x 3", "16 x 3 x 3 x 3", "pad [1, 1]", "b x 28 x 28 x 16"),
    ],
    ids=["stride", "dilation", "3 x 1", "5 x 5", "groups", "transposed", "f64", "input", "1 dim", "few places", "few channels"],
)  # fmt: skip
def test_others_do_not(case: tuple[str, ...]) -> None:
    assert "winograd" not in providers(*case)  # type: ignore[arg-type]
