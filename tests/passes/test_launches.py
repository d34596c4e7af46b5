"""What the verifier says of a launch that does not fit its kernel or its program; the passes that make launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.driver import run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.options import CompileOptions
from ait_mlir.passes.pipelines import passes_between

LISTS = Path(__file__).parents[2] / "lit_tests" / "passes"

GRAPH = """
ait.graph @f(%x: !ait.tensor<b x 8 x f16>) dims {b = 1 to 64} {
  %0 = ait.relu %x : !ait.tensor<b x 8 x f16>
  ait.output "y" %0 : !ait.tensor<b x 8 x f16>
}
"""


def planned() -> str:
    """The program of a graph with one launch."""
    module = parse_text(context(), GRAPH)
    run_to_phase(module, "planned")
    text = str(module)
    assert text.count("ait_rt.launch @fused_relu_0 ins(%x) outs(%0) workspace() stream 0") == 1
    return text


def parse(text: str) -> None:
    check(parse_text(context(), text), SourceText("<text>", text))


def test_the_program_as_it_is() -> None:
    parse(planned())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stream 0", "stream 16", "stream 16, expected a number from 0 to 15"),
        ("stream 0", "stream -1", "stream -1, expected a number from 0 to 15"),
        ("@fused_relu_0", "@gelu_0", "no kernel @gelu_0 in this module"),
        ("ins(%x)", "ins()", "@fused_relu_0 has 1 ins, the launch gives 0"),
        ("ins(%x)", "ins(%x, %x)", "@fused_relu_0 has 1 ins, the launch gives 2"),
        ("outs(%0)", "outs()", "@fused_relu_0 has 1 outs, the launch gives 0"),
        ("outs(%0)", "outs(%x)", "writes input 'x', which is the caller's"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    head, launch = planned().split("ait_rt.launch", 1)
    with pytest.raises(SourceError) as error:
        parse(head + "ait_rt.launch" + launch.replace(old, new, 1))
    assert message in str(error.value), str(error.value)


def test_a_program_with_a_larger_range_than_the_kernel() -> None:
    head, program = planned().split("ait_rt.program", 1)
    with pytest.raises(SourceError, match="@fused_relu_0 is for b = 1 to 64, the program has 1 to 65"):
        parse(head + "ait_rt.program" + program.replace("b = 1 to 64", "b = 1 to 65"))


@pytest.mark.parametrize(
    ("name", "line", "target", "arch"),
    [
        ("launches.mlir", 0, "cuda", "sm_90a"),
        ("launches_b2b.mlir", 0, "cuda", "sm_90a"),
        ("launches_b2b.mlir", 1, "cpu", ""),
    ],
)
def test_the_lists_of_launches_are_those_of_a_compilation(name: str, line: int, target: str, arch: str) -> None:
    run = (LISTS / name).read_text().splitlines()[line]
    assert f"-p '{passes_between('imported', 'bufferized', target, arch)}'" in run


@pytest.mark.parametrize("target", ["cpu", "cuda", "rocm"])
def test_many_pieces_are_one_launch(target: str) -> None:
    count, piece = 200, "!ait.tensor<b x 3 x f16>"
    names = [f"%a{i}" for i in range(count)]
    whole = f"!ait.tensor<b x {3 * count} x f16>"
    join = f'  %y = ait.concat {", ".join(names)} dim 1 : {whole}\n  ait.output "y" %y : {whole}'
    cut = f"  {', '.join(names)} = ait.split %x dim 1 : {', '.join([piece] * count)}\n"
    cut += "\n".join(f'  ait.output "y{i}" {name} : {piece}' for i, name in enumerate(names))
    for inputs, body in ((", ".join(f"{n}: {piece}" for n in names), join), (f"%x: {whole}", cut)):
        module = parse_text(context(), f"ait.graph @f({inputs}) dims {{b = 1 to 64}} {{\n{body}\n}}")
        run_to_phase(module, "planned", CompileOptions(target))
        assert str(module).count("ait_rt.launch") == 1
