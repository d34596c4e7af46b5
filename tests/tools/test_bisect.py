"""`ait bisect`: a planted wrong pattern and a planted wrong kernel are found, with a reduced text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.elementwise import SubOp, TanhOp
from ait_mlir.lowering import regions
from ait_mlir.passes.patterns import PatternPass
from ait_mlir.tools.cli import main

T, U = "!ait.tensor<b x 8 x f32>", "!ait.tensor<b x 16 x f32>"
MODEL = f"""ait.graph @model(%x: {T}) dims {{b = 1 to 64}} {{
  %w = ait.param "w" : !ait.tensor<16 x 8 x f32>
  %0 = ait.softmax %x dim 1 : {T}
  %1 = ait.gemm rcr %0, %w : {U}
  %2 = ait.layer_norm %1 axes 1 eps 1.0e-5 : {U}
  %3 = ait.tanh %2 : {U}
  %4 = ait.softmax %3 dim 1 : {U}
  %5 = ait.sub %4, %2 : {U}
  %6 = ait.softmax %5 dim 1 : {U}
  ait.output "y" %6 : {U}
}}
"""
PRODUCTS = f"""ait.graph @model(%x: {T}) dims {{b = 1 to 64}} {{
  %w = ait.param "w" : !ait.tensor<16 x 8 x f32>
  %v = ait.param "v" : !ait.tensor<16 x 16 x f32>
  %0 = ait.gemm rcr %x, %w : {U}
  %1 = ait.gemm rcr %0, %v : {U}
  %2 = ait.tanh %1 : {U}
  %3 = ait.gemm rcr %2, %v : {U}
  ait.output "y" %3 : {U}
}}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(MODEL)
    return tmp_path / "model.mlir"


@pytest.fixture
def wrong_pattern(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pass `fuse-norm` also swaps the operands of differences."""
    right = PatternPass.changes

    def changes(self: PatternPass, ctx: Context, module: ModuleOp) -> bool:
        changed = right(self, ctx, module)
        for op in module.walk() if self.name == "fuse-norm" else ():
            if isinstance(op, SubOp):
                op.operands = tuple(reversed(op.operands))
                changed = True
        return changed

    monkeypatch.setattr(PatternPass, "changes", changes)
    yield


@pytest.mark.usefixtures("model", "wrong_pattern")
def test_a_wrong_pattern_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "model.mlir", "--dim", "b=3", "-o", "small.mlir"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("the first wrong pass: fuse-norm\n  y: the error is ")
    assert "compares at b = 3" in captured.err and "pass fuse-norm: leaves the reference" in captured.err
    small = Path("small.mlir").read_text()
    assert re.findall(r"ait\.(\w+) %", small) == ["sub"], small


@pytest.mark.usefixtures("model", "wrong_pattern")
def test_a_saved_program_is_bisected_too(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    class Difference(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, 1) - x

    torch.export.save(torch.export.export(Difference(), (torch.randn(3, 8),)), "m.pt2")
    np.save("x.npy", np.ones((3, 8), np.float32))
    assert main(["bisect", "m.pt2", "--input", "x=@x.npy", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["found"], found["name"]) == ("pass", "fuse-norm") and "ait.sub" in found["text"]


@pytest.mark.usefixtures("model", "wrong_pattern")
def test_an_onnx_file_is_bisected_too(capsys: pytest.CaptureFixture[str]) -> None:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Sub", ["t", "x"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 4]) for name in "xy")
    opsets = [helper.make_opsetid("", 20)]
    graph = helper.make_graph(nodes, "net", [x], [y])
    Path("net.onnx").write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    assert main(["bisect", "net.onnx", "--dim", "rows=3", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["found"], found["name"]) == ("pass", "fuse-norm") and "ait.sub" in found["text"]


@pytest.mark.usefixtures("model", "built_runtime")
def test_a_wrong_kernel_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(regions.EXPRESSIONS, TanhOp, "ait::neg({0})")
    Path("model.mlir").write_text(PRODUCTS)
    assert main(["bisect", "model.mlir", "--dim", "b=3", "-o", "small.mlir"]) == 1
    captured = capsys.readouterr()
    first, second, third = captured.out.splitlines()
    assert first.startswith("model.mlir:6:3: the first wrong launch: gemm_rcr_tanh (#ait.kernel<"), captured.out
    assert second.startswith("  result 0: the error is ") and third == "  reduced to 5 ops"
    small = Path("small.mlir").read_text()
    assert small.count("ait.gemm") == small.count("ait.tanh") == small.count("kernel = ") == 1
    assert main(["bisect", "small.mlir", "--json"]) == 1
    assert "tanh" in json.loads(capsys.readouterr().out)["name"]


@pytest.mark.usefixtures("model", "built_runtime")
def test_a_right_model_has_nothing_to_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "model.mlir", "--input", "x=random:5x8", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"found": None} and "compares at b = 5" in captured.err


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--input", "z=random:5x8"], "no input 'z'; the inputs are x"),
        (["--input", "x=random:5x9"], "shape"),
        (["--dim", "b=65"], "from 1 to 64"),
        (["--input", "x=random:0x8"], "b = 0; expected 1 to 64"),
        (["--weights", "none.safetensors"], "no such file"),
        (["--without", "no-pass"], "no-pass"),
        (["--tolerance", "-1"], "expected a number, 0 or more"),
    ],
)
def test_wrong_options_are_errors(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "model.mlir", *options]) == 1
    err = capsys.readouterr().err
    assert "error: " in err and said in err and "Traceback" not in err, err
