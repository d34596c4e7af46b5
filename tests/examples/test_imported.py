"""The examples of imported models, as a user runs them."""

from __future__ import annotations

import re

import pytest

from tests.examples.support import ROOT, make_tools, run

LLAMA = "python examples/import_llama.py --layers 2 --hidden 64"
COMPILED = "python examples/torch_compile.py"


def llama(device: str, sizes: tuple[str, ...], tmp_path) -> None:
    pytest.importorskip("transformers")
    printed = run(f"{LLAMA} --device {device}", ROOT, make_tools(tmp_path / "bin"))
    assert re.search(rf"^exported, imported and compiled in .*<Model llama for {device}: \(input_ids: int64\)", printed)
    assert tuple(re.findall(r"^batch (\d+ x \d+): max error \S+, \S+ of PyTorch's; .*  ok$", printed, re.M)) == sizes


def torch_compile(device: str, tmp_path) -> None:
    printed = run(f"{COMPILED} --device {device} 2>&1", ROOT, make_tools(tmp_path / "bin"))
    assert len(re.findall(r"^a graph of \d+ operations is compiled$", printed, re.M)) == 2
    source = (ROOT / "examples/torch_compile.py").read_text().splitlines()
    ((line, code),) = [(i, text.strip()) for i, text in enumerate(source, 1) if "torch.linalg.svdvals(" in text]
    place = rf"\S*torch_compile\.py:{line} in forward: {re.escape(code)}"
    refused = (
        rf"^a graph of 1 operation at {place} runs in PyTorch: 1 operation of the model cannot be imported:\n"
        rf"  aten\._linalg_svd\.default, used once, first at {place}$"
    )
    assert len(re.findall(refused, printed, re.M)) == 2
    assert "Warning" not in printed
    (worst,) = re.findall(r"^largest difference from PyTorch: (\S+)$", printed, re.M)
    assert float(worst) <= 1e-3


def test_a_llama_is_imported(tmp_path):
    llama("cpu", ("1 x 7", "2 x 33", "4 x 64"), tmp_path)


def test_a_model_with_a_graph_break_runs(tmp_path):
    torch_compile("cpu", tmp_path)


@pytest.mark.gpu
def test_a_llama_is_imported_for_the_gpu(tmp_path):
    llama("cuda", ("1 x 128", "4 x 512", "8 x 100"), tmp_path)


@pytest.mark.gpu
def test_a_model_with_a_graph_break_runs_on_the_gpu(tmp_path):
    torch_compile("cuda", tmp_path)
