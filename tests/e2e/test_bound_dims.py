"""Dims that a run binds: actual shapes after it, room for the most before it, and nothing that needs to know them earlier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.runtime import Model
from ait_mlir.tools.cli import main
from tests.e2e.support import Compiled, compile_graph, parse_graph

TEXT = """
ait.graph @select(%x: !ait.tensor<b x 8 x f32>, %m: !ait.tensor<b x 8 x i1>, %rows: !ait.tensor<b x i1>) dims {b = 0 to 500, count = 0 to 8*b bound, kept = 0 to b bound, again = 0 to count bound} {
  %y, %n = ait.masked_select %x, %m : !ait.tensor<count x f32>, !ait.tensor<i64>
  %c = ait.constant 0.0 : !ait.tensor<f32>
  %g = ait.compare gt %y, %c : !ait.tensor<count x i1>
  %z, %k = ait.masked_select %y, %g : !ait.tensor<again x f32>, !ait.tensor<i64>
  %s = ait.exp %z : !ait.tensor<again x f32>
  %r, %l = ait.masked_select %x, %rows : !ait.tensor<kept x 8 x f32>, !ait.tensor<i64>
  %t = ait.softmax %r dim 1 : !ait.tensor<kept x 8 x f32>
  %p = ait.permute %t [1, 0] : !ait.tensor<8 x kept x f32>
  ait.output "y" %y : !ait.tensor<count x f32>
  ait.output "s" %s : !ait.tensor<again x f32>
  ait.output "p" %p : !ait.tensor<8 x kept x f32>
  ait.output "n" %n : !ait.tensor<i64>
}
"""


@pytest.fixture(scope="module")
def select(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(TEXT, tmp_path_factory.mktemp("bound"))


@pytest.mark.parametrize("b", [0, 1, 3, 500])
def test_a_run_is_what_the_reference_says(select: Compiled, b: int) -> None:
    assert select.problems({"b": b, "count": 8 * b, "kept": b, "again": 8 * b}) == []


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_nothing_and_everything(select: Compiled, share: float) -> None:
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    inputs = [x, np.full((5, 8), share > 0), np.full(5, share > 0)]
    found = select.model.run_with_tensors(inputs)
    assert found["y"].shape == (40 * share,) and found["p"].shape == (8, 5 * share) and found["n"] == 40 * share
    assert select.model.infer_output_shapes(inputs) == {"y": (40,), "s": (40,), "p": (8, 5), "n": ()}
    assert select.model.output_shapes({"b": 5})["y"] == (40,)
    assert select.model.get_output_maximum_shape("y") == [4000]
    assert select.model.dims == {"b": (0, 500)}


def test_a_buffer_that_is_too_small_is_refused(select: Compiled) -> None:
    inputs = list(select.inputs({"b": 3, "count": 24, "kept": 3, "again": 24}).values())
    outputs = select.model.make_outputs(inputs)
    outputs[0] = outputs[0][:-1].copy()
    with pytest.raises(InputError, match=r"output 'y' has shape \[23\], too small for the result of shape \[24\]"):
        select.model.run(inputs, outputs)


def test_tools_show_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = compile_module(parse_graph(TEXT)[0], output=tmp_path / "select.ait")
    assert main(["run", str(artifact), "--dim", "b=7", "--compare", "reference"]) == 0
    assert main(["inspect", str(artifact), "--launches", "--dim", "b=7"]) == 0
    told = capsys.readouterr().out
    assert "dim       count = 0 to 8*b bound by a launch" in told
    assert "waits     the host waits for count, again, kept, between parts that can be recorded as graphs" in told
    assert Model(artifact).run_with_tensors([np.ones((1, 8), np.float32), np.ones((1, 8), bool), np.ones(1, bool)])
