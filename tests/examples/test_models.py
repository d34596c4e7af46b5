"""The benchmark of models: its rows, its peers, what it counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import measure, workloads
from benchmarks.models import Row
from benchmarks.peers import llama
from benchmarks.peers.bert import randomize

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "vocab_size": 50,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/models.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_table_on_the_cpu(tmp_path: Path):
    sizes = ("--layers", "1", "--batch", "1,2", "--seq", "8", "--budget", "0.05")
    done = run("bert", "--device", "cpu", *sizes, "--workdir", str(tmp_path))
    assert done.returncode == int("FAILED" in done.stdout), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-5].split()[:4] == ["model", "batch", "x", "length"]
    assert [line.split()[:4] for line in lines[-3:-1]] == [["bert", "1", "x", "8"], ["bert", "2", "x", "8"]]
    assert lines[-1].startswith("ours / best peer of 2 rows: geometric mean ")


def test_an_unknown_model_is_named():
    done = run("bart")
    assert done.returncode == 2
    assert "no model bart; there are bert, vit, gpt2, llama, llama-decode" in done.stderr


def test_the_best_peer_is_the_fastest():
    exact = measure.Accuracy(0, 1, 1)
    row = Row("m", (1, 8), {"ours": 0.002, "eager": 0.004, "compile": 0.001}, 0.001, exact)
    assert (row.best, row.ratio) == ("compile", 2)
    assert row.cells(["eager", "compile", "autotune"])[2:8] == [
        "2.000",
        "4.000",
        "1.000",
        "-",
        "2.00 (compile)",
        "1.000",
    ]


def test_one_step_of_the_peer_is_the_last_of_all_tokens():
    config = llama.LlamaConfig(**SMALL)
    whole = randomize(llama.LlamaModel(config)).double().eval()
    step = randomize(llama.LlamaStep(config)).double().eval()
    ids, places = torch.randint(0, 50, (3, 7)), torch.arange(7).expand(3, 7)
    with torch.inference_mode():
        want = whole(ids, places)[:, -1:]
        whole(ids[:, :-1], places[:, :-1])
        cache = [torch.nn.functional.pad(t, (0, 0, 0, 1)) for pair in whole.presents for t in pair]
        torch.testing.assert_close(step(ids[:, -1:], places[:, -1:], *cache), want)


@pytest.mark.parametrize("name", workloads.MODELS)
def test_flops_are_those_of_the_peer(name: str, monkeypatch: pytest.MonkeyPatch):
    """Counted by PyTorch's own counter, on tensors without data; attention is counted in full where it is causal."""
    from torch.utils.flop_counter import FlopCounterMode

    monkeypatch.setattr(workloads.peer_bert, "randomize", lambda module: module)
    size = (2, workloads.MODELS[name].lengths[0])
    with torch.device("meta"):
        work = workloads.MODELS[name].build(torch.float32, 1, [size])
        arguments = [torch.empty((2, 1 if name == "llama-decode" else size[1]), dtype=torch.int64) for _ in range(2)]
        if name == "llama-decode":
            arguments += [torch.empty(2, 32, size[1] + 1, 128) for _ in range(2)]
        if name == "bert":
            arguments = [torch.empty(*size, 768)]
        if name == "vit":
            arguments = [torch.empty(2, 3, 224, 224)]
        with (
            torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
        ):
            work.peer(*arguments)
    counted = counter.get_total_flops()
    assert work.flops(size) <= counted
    assert work.flops(size) == pytest.approx(counted, rel=0.04)
