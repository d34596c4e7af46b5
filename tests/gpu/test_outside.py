"""Operators from outside of the package on a card: the tutorial's, as it is written there, and one with its own class."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ait_mlir import outside
from ait_mlir.frontend import IntVar, Tensor, compile_model
from tests.outside import add_one

pytestmark = pytest.mark.gpu
MINE = Path(__file__).parents[1] / "outside" / "mine.py"


def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    add_one.verify_add_one()
    assert capsys.readouterr().out.split() == ["True"]


def test_the_tutorial_with_dynamic_dims(tmp_path: Path):
    y = add_one.create_ait_model([IntVar([0, 64], name="batch"), 33])
    model = compile_model(y, "cuda", tmp_path, "add_one")
    torch = pytest.importorskip("torch")
    for batch in (0, 1, 33, 64):
        x = torch.randn(batch, 33).cuda().half()
        for graph_mode in (False, True, True):
            made = model.run_with_tensors({"X": x}, {"Y": torch.empty_like(x)}, graph_mode=graph_mode)
            assert torch.equal(made["Y"], x + 1.0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str):
    monkeypatch.setattr(outside, "_table", dict(outside.rows()))
    monkeypatch.setattr(outside, "_loaded", {})
    monkeypatch.setattr(sys, "path", sys.path[:])
    mine = outside.load(MINE)
    torch = pytest.importorskip("torch")
    x = Tensor([IntVar([0, 64], name="batch"), 8], dtype=dtype, name="x", is_input=True)
    model = compile_model(
        mine.Rotate.on(mine.Power.on(x, scale=2), angle=0.5).mark_as_output("y"), "cuda", tmp_path, "r"
    )
    for batch in (0, 1, 64):
        data = torch.randn(batch, 8).cuda().to(getattr(torch, dtype))
        made = model.run_with_tensors({"x": data}, {"y": torch.empty_like(data)})["y"]
        expected = mine.Rotate.reference(2 * data.double().cpu().numpy() ** 3, angle=0.5)
        limits = {"rtol": 2e-3, "atol": 2e-2} if dtype == "float16" else {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(made.double().cpu().numpy(), expected, **limits)
    outside.remove("mine.rotate")
    del sys.modules[mine.__name__]
