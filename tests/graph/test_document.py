"""The code blocks of cuDNN's notebook on its low-level Python API, with the import and the device changed.

`document.txt` holds the blocks in order; they share their names, as the cells of a notebook do.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph.operations import OPERATIONS, REFUSED

BLOCKS = Path(__file__).with_name("document.txt").read_text().split("# %%\n")


def adapted(block: str, device: str) -> str:
    """A block for our package and a device."""
    text = block.replace("import cudnn", "import ait_mlir.graph as cudnn")
    text = text.replace("create_handle()", f'create_handle(device="{device}")').replace('"cuda"', f'"{device}"')
    return text.replace("torch.cuda.synchronize()", "") if device == "cpu" else text


def run_blocks(device: str) -> dict[str, Any]:
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    for i, block in enumerate(BLOCKS):
        exec(compile(adapted(block, device), f"block {i} of the document", "exec"), names)
    return names


def test_there_are_all_blocks_of_the_document():
    text = "".join(BLOCKS)
    assert len(BLOCKS) == 9
    for call in ("graph.build(", "@cudnn.jit(", "graph.check_support()", "graph.serialize()", "graph.sdpa("):
        assert call in text


def check_statistics(names: dict[str, Any]) -> None:
    """The blocks compare the outputs themselves, but not the statistics of the last one."""
    q, k, stats = (names[f"{n}_gpu"].float().cpu() for n in ("q", "k", "stats"))
    scores = (q @ k.mT) * names["attn_scale"]
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    expected = scores.masked_fill(hidden, -torch.inf).logsumexp(-1, keepdim=True)
    torch.testing.assert_close(stats, expected, atol=1e-2, rtol=1e-2)  # the statistics are in bf16


def test_blocks_run_on_the_cpu():
    check_statistics(run_blocks("cpu"))


def test_the_decorated_function_returns_one_graph_for_equal_tensors():
    names: dict[str, Any] = {}
    for block in (*BLOCKS[:3], BLOCKS[4]):
        exec(compile(adapted(block, "cpu"), "block", "exec"), names)
    again, uids = names["create_matmul_bias_graph"](names["handle"], names["a_gpu"], names["b_gpu"], names["d_gpu"])
    assert again is names["g"]
    assert uids == names["uids"]


def test_our_own_page_runs():
    page = Path(__file__).parents[2] / "docs" / "graph_api.md"
    code = page.read_text().split("## A graph")[1].split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, str(page), "exec"), names)
    expected = torch.relu(names["x"] @ names["w"] + names["b"])
    torch.testing.assert_close(names["y"], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.gpu
def test_blocks_run_on_cuda():
    check_statistics(run_blocks("cuda"))


def test_the_page_has_the_operations_and_what_is_refused():
    page = (Path(__file__).parents[2] / "docs" / "graph_api.md").read_text()
    table = page.split("## Operations")[1].split("### Attention")[0]
    names = [name for row in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for name in row.strip("`").split()]
    assert sorted(names) == sorted(OPERATIONS)
    refused = page.split("## What is refused")[1]
    methods = [name for name in re.findall(r"`(\w+)`", refused) if name in REFUSED]
    assert {"sdpa_fp8", "conv_dgrad", "gdn", "mamba2"} <= set(methods)
    for name in methods:
        with pytest.raises(cudnn.cudnnGraphNotSupportedError, match=rf"\({name}\)"):
            getattr(cudnn.pygraph(handle=cudnn.create_handle(device="cpu")), name)()
    arguments = set(re.findall(r"`(?:\w+\()?(\w+)[=`]", refused.partition("Functions of")[0])) - {*REFUSED, *OPERATIONS}
    cases = Path(__file__).with_name("test_bad_graphs.py").read_text()
    assert {"peer_stats", "kv_mask", "group_offset", "in_place_index"} <= arguments
    for name in arguments - {"cudnnGraphNotSupportedError"}:
        assert f'"{name}"' in cases or f"{name}=" in cases, f"no test refuses {name}"
    assert not hasattr(cudnn, "gnn_mha_gat_forward") and hasattr(cudnn.ops, "causal_conv1d")
