"""The examples in text: what they compute, and what the passes make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import read_module, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.options import CompileOptions
from ait_mlir.passes.parse import parse_passes
from ait_mlir.reference import evaluate_graph
from ait_mlir.tools.cli import main
from benchmarks.peers import bert as peer
from benchmarks.peers import llama as llama_peer
from tests.examples.support import ROOT

FFN, BERT, LLAMA = (ROOT / f"examples/{name}.mlir" for name in ("ffn", "bert_layer", "llama_layer"))


def graph_in(module: ModuleOp) -> GraphOp:
    graph = module.body.block.first_op
    assert isinstance(graph, GraphOp)
    return graph


def load(path: Path, passes: str = "") -> ModuleOp:
    module, source = read_module(path)
    run_passes(context(), module, parse_passes(passes), source=source)
    return module


def test_ffn_is_what_it_says():
    rng = np.random.default_rng(0)
    graph = graph_in(load(FFN))
    params = {p.param_name.data: rng.standard_normal(p.output.type.static_shape()) / 30 for p in graph.params()}
    x = rng.standard_normal((3, 768))
    got = evaluate_graph(graph, {"x": x}, params, {"batch": 3})["y"]
    t = {name: torch.from_numpy(value) for name, value in params.items()}
    up = F.gelu(F.linear(torch.from_numpy(x), t["up.weight"], t["up.bias"]))
    np.testing.assert_allclose(got, F.linear(up, t["down.weight"], t["down.bias"]).numpy(), rtol=1e-9, atol=1e-12)


NAMES = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output.norm": "output.LayerNorm",
}


@pytest.mark.parametrize("passes", ["", "simplify,fuse-attention,merge-parallel-gemms,fuse-epilogue,fuse-norm"])
def test_bert_layer_is_a_bert_layer(passes):
    theirs = peer.randomize(peer.BertLayer(peer.BertConfig())).double()
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    graph = graph_in(load(BERT, passes))
    params: dict[str, np.ndarray] = {}
    for p in graph_in(load(BERT)).params():
        module, kind = p.param_name.data.rsplit(".", 1)
        params[p.param_name.data] = weights[f"{NAMES[module]}.{kind}"]
    x = np.random.default_rng(0).standard_normal((2, 5, 768))
    got = evaluate_graph(graph, {"x": x}, params, {"batch": 2, "seq": 5})["y"]
    with torch.inference_mode():
        want = theirs(torch.from_numpy(x))
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "passes", ["", "simplify,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise"]
)
def test_llama_layer_is_a_llama_layer(passes):
    config = llama_peer.LlamaConfig(
        hidden_size=1024, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816
    )
    theirs = peer.randomize(llama_peer.LlamaDecoderLayer(config)).double()
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    rng = np.random.default_rng(0)
    x, angles = rng.standard_normal((2, 5, 1024)), rng.standard_normal((5, 1, 32))
    cos, sin = np.cos(angles), np.sin(angles)
    graph = graph_in(load(LLAMA, passes))
    got = evaluate_graph(graph, {"x": x, "cos": cos, "sin": sin}, weights, {"batch": 2, "seq": 5})["y"]
    with torch.inference_mode():
        want, _ = theirs(*map(torch.from_numpy, (x, cos, sin)), None)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-8, atol=1e-9)


def test_one_gemm_for_each_linear_layer_and_nothing_beside_it(tmp_path):
    module = load(FFN, "simplify,fuse-epilogue")
    names = [op.name for op in graph_in(module).block.ops]
    assert names.count("ait.gemm") == 2
    assert not {"ait.add", "ait.gelu", "ait.fused_elementwise"} & set(names)
    printed = str(module) + "\n"
    (tmp_path / "again.mlir").write_text(printed)
    assert str(load(tmp_path / "again.mlir")) + "\n" == printed


@pytest.mark.parametrize("path", [FFN, BERT, LLAMA], ids=lambda p: p.stem)
def test_every_phase_parses_again_to_the_same_text(path, tmp_path):
    module, source = read_module(path)
    for start, phase in [
        ("imported", "simplified"),
        ("simplified", "fused"),
        ("fused", "selected"),
        ("selected", "bufferized"),
        ("bufferized", "planned"),
    ]:
        run_to_phase(module, phase, CompileOptions(start=start), source=source)
        printed = str(module) + "\n"
        file = tmp_path / f"{phase}.mlir"
        file.write_text(printed)
        module, source = read_module(file)
        assert str(module) + "\n" == printed


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_one_op_of_each_kind_becomes_a_program(target: str):
    module, source = read_module(ROOT / "examples/kinds.mlir")
    run_to_phase(module, "planned", CompileOptions(target), source=source)
    text = str(module)
    for launch in (
        "conv_bias_clamp",
        "cumulative",
        "reduce",
        "fused_add_tanh",
        "update_slice",
        "masked_select",
        "fused_exp",
    ):
        assert f"launch @{launch}" in text
    assert "ait_rt.loop step to (len)" in text and "to (100)" in text
    assert 'ait_rt.read_dim "kept"' in text
    assert 'ait_rt.output "cache" in place of %cache' in text


def test_one_op_of_each_kind_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    artifact = str(tmp_path / "kinds.ait")
    assert main(["compile", str(ROOT / "examples/kinds.mlir"), "--target", "cpu", "-o", artifact]) == 0
    for length in ("0", "1", "6"):
        assert main(["run", artifact, "--dim", "b=3", "--dim", f"len={length}", "--compare", "reference"]) == 0
    assert capsys.readouterr().out.count(" ok\n") == 18
