"""The programs of docs/onnx.md run as written, one after the other; the commands take ONNX files."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.tools.cli import main  # noqa: E402

ROOT = Path(__file__).parents[2]


def test_the_page_runs_and_the_commands_take_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/onnx.md").read_text(), re.S)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    exec(compile("".join(blocks), "onnx.md", "exec"), {})

    assert main(["import", "net.onnx", "-o", "net.mlir"]) == 0
    assert "rows x 4 x f32" in Path("net.mlir").read_text() and Path("net.safetensors").exists()
    assert main(["compile", "net.onnx", "-o", "net.ait"]) == 0

    class Session:
        """Stands for ONNX Runtime, which is not a dependency: it computes the file by onnx's evaluator."""

        def __init__(self, path: str, providers: list[str]) -> None:
            from onnx.reference import ReferenceEvaluator

            self.found = ReferenceEvaluator(path)

        def get_outputs(self) -> list[Any]:
            return [types.SimpleNamespace(name=name) for name in self.found.output_names]

        def run(self, names: list[str], inputs: dict[str, Any]) -> list[Any]:
            return self.found.run(names, inputs)

    module = types.ModuleType("onnxruntime")
    module.InferenceSession = Session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime", module)
    assert main(["run", "net.onnx", "--dim", "rows=5", "--compare", "onnxruntime"]) == 0
    np.save("wrong.npy", np.ones((5, 3), np.float32))
    assert main(["run", "net.onnx", "--dim", "rows=5", "--compare", "wrong.npy"]) == 1
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["run", "net.onnx", "--dim", "rows=5", "--compare", "onnxruntime"]) == 1
    assert "pip install onnxruntime" in capsys.readouterr().err


def test_the_command_lists_all_unsupported_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["y"], name="noise"),
        helper.make_node("Multinomial", ["x"], ["z"], name="draw"),
    ]
    value = onnx.TensorProto.FLOAT
    ends = [helper.make_tensor_value_info(n, value, [2, 2]) for n in "xyz"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), tmp_path / "m.onnx")
    assert main(["import", "--check", str(tmp_path / "m.onnx")]) == 1
    found = capsys.readouterr().err
    assert "2 nodes" in found and "'noise' (RandomUniformLike), opset 20" in found and "'draw' (Multinomial)" in found
