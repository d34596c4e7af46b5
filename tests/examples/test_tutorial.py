"""The tutorial runs, says what it promises, and its pattern works from a file."""

from __future__ import annotations

from tests.examples.support import ROOT, make_tools, run

TUTORIAL = ROOT / "docs/tutorial/compiler_pass.py"


def test_tutorial(tmp_path):
    env = make_tools(tmp_path / "bin")
    printed = run(f"python {TUTORIAL}", tmp_path, env)
    model, rest = printed.split("\n\n", 1)
    assert "%0 = ait.sigmoid %x" in model
    assert "comparisons, 0 differences" in rest
    assert "pass 'careless' changes the meaning of @gate" in rest
    assert "with its conditions: 0 differences" in rest

    text = TUTORIAL.read_text()
    (tmp_path / "model.mlir").write_text(text.split('MODEL = b"""')[1].split('"""')[0])
    (tmp_path / "logistic.mlir").write_text(printed[printed.index("builtin.module", printed.index("conditions")) :])
    (command,) = [line.strip("# ") for line in text.splitlines() if "ait-opt model.mlir" in line]
    assert run(command, tmp_path, env).strip() == model
