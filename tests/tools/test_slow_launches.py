"""The share of its floor that a launch reaches by estimate, and the warning of a launch far above it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from ait_mlir.contents import slow_warnings
from ait_mlir.driver import compile_module, program_of, run_to_phase
from ait_mlir.errors import SlowLaunchWarning
from ait_mlir.importers.torch import from_torch
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.module_target import make_target
from ait_mlir.options import CompileOptions
from ait_mlir.passes import launch_cost
from ait_mlir.passes.launch_cost import floor_seconds
from ait_mlir.tools.cli import main
from ait_mlir.tools.report import report

CUDA = make_target("cuda", "sm_90a")
SORTED = """
ait.graph @sorted(%x: !ait.tensor<4096 x 4097 x f32>, %s: !ait.tensor<8 x f32>) {
  %0 = ait.relu %x : !ait.tensor<4096 x 4097 x f32>
  %1, %2 = ait.sort %0 dim 1 : !ait.tensor<4096 x 4097 x f32>, !ait.tensor<4096 x 4097 x i64>
  %3, %4 = ait.sort %s dim 0 : !ait.tensor<8 x f32>, !ait.tensor<8 x i64>
  ait.output "y" %1 : !ait.tensor<4096 x 4097 x f32>
  ait.output "z" %3 : !ait.tensor<8 x f32>
}
"""


def planned(module):
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"))
    return module


def told(module):
    return slow_warnings(module, program_of(module))


def test_a_slow_launch_is_named_with_its_line():
    """One warning: the relu runs at the rate of a copy, and the small sort does not matter."""
    ((text, file, line),) = told(planned(parse_text(context(), SORTED, "sorted.mlir")))
    assert (file, line) == ("sorted.mlir", 4)
    assert re.fullmatch(r"sort \(kernel \w+\) is estimated at \d+ us, \d+ times the \d+ us that .* take", text), text


class Sorts(nn.Module):
    def forward(self, x):
        return torch.sort(x * 2, 1)[0]  # this line


def test_the_line_of_an_imported_model():
    imported = from_torch(Sorts().eval(), (torch.zeros(4096, 4097),))
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# this line" in text)
    ((_, *place),) = told(planned(imported.module))
    assert place == [__file__, line]


def test_a_compilation_warns(tmp_path, monkeypatch):
    text = SORTED.replace("4096", "4").replace("4097", "5")
    monkeypatch.setattr(launch_cost, "SLOW", 0.0)
    with pytest.warns(SlowLaunchWarning) as found:
        compile_module(parse_text(context(), text), CompileOptions("cpu"), output=tmp_path / "sorted.ait")
    assert {str(warning.message).split()[0] for warning in found} == {"fused_relu", "sort"}


def floor_of(text: str) -> float:
    module = parse_text(context(), f"ait.graph @floor{text}")
    op = next(op for op in module.walk() if op.name in ("ait.gemm", "ait.relu"))
    return floor_seconds(op, CUDA) - CUDA.launch_seconds


def test_floors():
    """Bytes at the rate of a copy; products of narrow floats at the rate of the matrix units, others at the vectors'."""
    moved = floor_of("(%x: !ait.tensor<1000 x f32>) { %y = ait.relu %x : !ait.tensor<1000 x f32> }")
    assert moved == pytest.approx(8000 / CUDA.bandwidth)

    def product(t: str) -> float:
        operands = f"%a: !ait.tensor<8192 x 8192 x {t}>, %b: !ait.tensor<8192 x 8192 x {t}>"
        return floor_of(f"({operands}) {{ %y = ait.gemm rrr %a, %b : !ait.tensor<8192 x 8192 x {t}> }}")

    assert product("f16") == pytest.approx(2 * 8192**3 / CUDA.row.flops)
    assert product("f32") == pytest.approx(16 * product("f16"))


def test_reports_have_the_shares(tmp_path, capsys):
    file = tmp_path / "sorted.mlir"
    file.write_text(SORTED)
    module = planned(parse_text(context(), SORTED))
    shares = {launch.op: launch.share for launch in report(module, program_of(module), {}).launches[:2]}
    assert shares["fused_relu"] == pytest.approx(1.0, abs=0.1) and shares["sort"] is not None and shares["sort"] < 0.2
    assert main(["inspect", str(file), "--target", "cuda", "--arch", "sm_90a", "--launches"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if "of floor" in line)
    cells = {line.split()[1]: line.split()[-1] for line in lines[lines.index(head) + 2 :] if "4096x4097" in line}
    assert cells["sort"] == f"{shares['sort']:.0%}"
    page = tmp_path / "page.html"
    where = ["--target", "cuda", "--arch", "sm_90a", "--to", "planned", "-o", str(tmp_path / "planned.mlir")]
    assert main(["compile", str(file), *where, "--report", str(page)]) == 0
    assert f">{cells['sort'].replace('%', ' %')}</td>" in page.read_text()
