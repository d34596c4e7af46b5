"""`ait import` and `ait compile FILE.pt2`."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from torch.export import Dim

from ait_mlir.tools.cli import main

SOURCE = """
import torch
from torch.export import Dim

class Good(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return {"y": self.linear(x).relu()}

class Bad(Good):
    def forward(self, x):
        return torch.special.bessel_j1(torch.special.bessel_j0(x))

def good():
    return Good().eval(), (torch.randn(2, 8),), {"x": {0: Dim("batch", max=16)}}

def as_dict():
    return {"module": Good().eval(), "example_inputs": (), "example_kwargs": {"x": torch.randn(2, 8)}}

def bad():
    return Bad().eval(), (torch.randn(2, 8),)

def fails():
    raise ValueError("no such size")

def nothing():
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(SOURCE)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
    program = torch.export.export(model, (torch.randn(2, 8),), dynamic_shapes=({0: Dim("batch", min=1, max=16)},))
    torch.export.save(program, tmp_path / "model.pt2")
    (tmp_path / "broken.pt2").write_bytes(b"no archive")
    return tmp_path


def test_a_saved_program_becomes_ir_and_weights(folder, capsys):
    assert main(["import", "model.pt2", "-o", "m.mlir"]) == 0
    assert "wrote m.mlir and m.safetensors: 2 operations, 2 weights of 144 bytes" in capsys.readouterr().out
    assert "ait.graph @model(" in (folder / "m.mlir").read_text()
    assert set(load_file(folder / "m.safetensors")) == {"0.weight", "0.bias"}
    assert main(["compile", "m.mlir", "--weights", "m.safetensors", "-o", "a.ait"]) == 0
    assert main(["compile", "model.pt2", "-o", "b.ait"]) == 0
    for artifact in ("a.ait", "b.ait"):
        assert main(["run", artifact, "--input", "input=random:3x8", "--compare", "reference"]) == 0
    told = capsys.readouterr()
    assert "ok" in told.out and "random ones are used" not in told.err
    assert main(["compile", "model.pt2", "--to", "fused"]) == 0
    assert "epilogue" in capsys.readouterr().out


def test_check_lists_everything_and_writes_nothing(folder, capsys):
    before = sorted(p.name for p in folder.iterdir())
    assert main(["import", "--check", "model.py:good"]) == 0
    assert main(["import", "--check", "model.py:as_dict"]) == 0
    assert capsys.readouterr().out.count("can be imported: 2 operations, 2 weights of 144 bytes") == 2
    assert main(["import", "--check", "model.py:bad"]) == 1
    told = capsys.readouterr().err
    assert "2 operations of the model cannot be imported" in told
    assert (
        "aten.special_bessel_j0.default, used once, first at" in told
        and "aten.special_bessel_j1.default, used once" in told
    )
    assert "model.py:15 in forward" in told
    assert sorted(p.name for p in folder.iterdir() if p.name != "__pycache__") == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("model.py:absent", "has no function 'absent'"),
        ("model.py:fails", "failed: ValueError: no such size"),
        ("model.py:nothing", r"returns NoneType; expected (module, example_inputs[, dynamic_shapes])"),
        ("absent.py:build", "there is no such file"),
        ("absent.pt2", "there is no such file"),
        ("broken.pt2", "is no program that torch.export.save has written: PytorchStreamReader failed reading zip archive"),
        ("absent.onnx", "No such file or directory"),
        ("model.h5", "expected FILE.onnx, FILE.pt2"),
    ],
)
def test_bad_sources_are_one_message(folder, capsys, source, message):
    assert main(["import", source, "-o", "out.mlir"]) == 1
    told = capsys.readouterr()
    assert message in told.err and told.err.count("\n") == 1 and told.out == ""
    assert not (folder / "out.mlir").exists() and not (folder / "out.safetensors").exists()


def test_ir_and_weights_need_two_names(folder, capsys):
    assert main(["import", "model.pt2", "-o", "m.mlir", "--weights", "m.mlir"]) == 1
    assert "give --weights another name" in capsys.readouterr().err
