"""The graphs that Model Explorer shows, and the data of a profile for their nodes."""

from __future__ import annotations

import importlib
import itertools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ait_mlir import driver
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.runtime import Model
from ait_mlir.tools.model_explorer.graphs import graphs_of, read_graphs

ROOT = Path(__file__).parents[2]
FFN = """
ait.graph @ffn(%x: !ait.tensor<4 x 8 x f32>) {
  %w = ait.param "w" : !ait.tensor<16 x 8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 16 x f32>
  %1 = ait.relu %0 : !ait.tensor<4 x 16 x f32>
  %2 = ait.softmax %1 dim 1 : !ait.tensor<4 x 16 x f32>
  ait.output "y" %2 : !ait.tensor<4 x 16 x f32>
}
"""
LOOP = """
ait_rt.kernel @relu "native" {} (%a: !ait.tensor<4 x f32>) {
  %0 = ait.relu %a : !ait.tensor<4 x f32>
  ait_rt.return %0 : !ait.tensor<4 x f32>
}
ait_rt.program @halves arena (32) {
  %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f32>
  %t = ait_rt.alloc at (0) : !ait_rt.buffer<8 x f32>
  ait_rt.loop step to (2) {
    %part = ait_rt.view %t offset (step*4) strides [1] : !ait_rt.buffer<4 x f32>
    ait_rt.launch @relu ins(%x) outs(%part) workspace() stream 0
  }
  %half = ait_rt.view %t offset (4) strides [1] : !ait_rt.buffer<4 x f32>
  ait_rt.launch @relu ins(%x) outs(%half) workspace() stream 0
  ait_rt.copy %t to %y
}
"""


def edges(graph: dict[str, Any]) -> dict[str, list[str]]:
    return {node["id"]: [edge["sourceNodeId"] for edge in node["incomingEdges"]] for node in graph["nodes"]}


def test_ops_are_nodes_with_types_and_values_are_edges(tmp_path: Path) -> None:
    file = tmp_path / "ffn.mlir"
    file.write_text(FFN)
    found = read_graphs(file)
    (graph,) = found["model"]
    assert list(found) == ["model"]
    assert graph["id"] == "ffn" and edges(graph) == {
        "input_0": [],
        "ait.param_1": [],
        "ait.gemm_2": ["input_0", "ait.param_1"],
        "ait.relu_3": ["ait.gemm_2"],
        "ait.softmax_4": ["ait.relu_3"],
        "ait.output_5": ["ait.softmax_4"],
    }
    gemm = graph["nodes"][2]
    assert {"key": "layout", "value": '"rcr"'} in gemm["attrs"]
    assert {"key": "location", "value": f"{file}:4:3"} in gemm["attrs"]
    shape = {"key": "tensor_shape", "value": "!ait.tensor<4 x 16 x f32>"}
    assert gemm["outputsMetadata"] == [{"id": "0", "attrs": [shape]}]


def test_launches_are_joined_by_the_buffers_that_they_write(tmp_path: Path) -> None:
    file = tmp_path / "halves.mlir"
    file.write_text(LOOP)
    found = read_graphs(file)
    (program,), (kernel,) = found["model"], found["kernels"]
    assert edges(program) == {
        "ait_rt.input_0": [],
        "ait_rt.output_1": ["ait_rt.copy_5"],
        "ait_rt.loop_2": [],
        "launch_0": ["ait_rt.input_0"],
        "launch_1": ["ait_rt.input_0"],
        "ait_rt.copy_5": ["launch_0", "launch_1"],
    }
    inner = next(node for node in program["nodes"] if node["id"] == "launch_0")
    assert inner["namespace"] == "ait_rt.loop_2" and inner["subgraphIds"] == [kernel["id"]] == ["relu"]


def test_the_data_of_a_profile_is_for_the_nodes_of_the_artifact(tmp_path: Path) -> None:
    w = np.ones((16, 8), np.float32)
    module = parse_source(context(), SourceText("ffn.mlir", FFN))
    with Model(driver.compile_module(module, output=tmp_path / "ffn.ait")) as model:
        model.set_many_constants({"w": w})
        model.profile_with_tensors([w[:4]], num_iters=1, node_data=tmp_path / "times.json")
    graphs = {graph["id"]: graph for graph in read_graphs(tmp_path / "ffn.ait")["model"]}
    for name, data in json.loads((tmp_path / "times.json").read_text()).items():
        launches = {node for node in edges(graphs[name]) if node.startswith("launch_")}
        assert set(data["results"]) == launches and len(launches) == 2


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.mlir")), ids=lambda path: path.stem)
def test_every_edge_of_an_example_has_a_source(path: Path) -> None:
    for phase in ("fused", "planned"):
        module, source = driver.read_module(path)
        found = graphs_of(driver.run_to_phase(module, phase, source=source))
        for graph in itertools.chain(*found.values()):
            sources = edges(graph)
            assert len(sources) == len(graph["nodes"]), "two nodes have one id"
            assert {name for names in sources.values() for name in names} <= set(sources)


def test_a_file_without_a_graph_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.mlir").write_text("builtin.module {}")
    with pytest.raises(AitError, match=r"has no ait.graph, ait_rt.program or ait_rt.kernel to show"):
        read_graphs(tmp_path / "empty.mlir")


def test_model_explorer_converts_a_file_with_the_adapter() -> None:
    manager = pytest.importorskip(
        "model_explorer.extension_manager", reason="the extra `explorer` is not installed"
    ).ExtensionManager(["ait_mlir.tools.model_explorer"])
    manager.load_extensions()
    path = str(ROOT / "examples" / "ffn.mlir")
    command = {"cmdId": "convert", "extensionId": "ait_mlir", "modelPath": path, "settings": {}}
    (collection,) = manager.run_cmd(command)["graphCollections"]
    (graph,) = collection["graphs"]
    builder = importlib.import_module("model_explorer.graph_builder")
    fields = set(asdict(builder.GraphNode("id", "label")))
    assert all(set(node) <= fields for node in graph["nodes"])
    assert graph["nodes"] == read_graphs(path)["model"][0]["nodes"]
