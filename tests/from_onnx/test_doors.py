"""A network by `torch.onnx` and by `torch.export`: the same results, and launches that differ only as listed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxscript", reason="torch.onnx exports with onnxscript, which is not installed")
torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ait_mlir.importers.onnx import import_model  # noqa: E402
from ait_mlir.reference import evaluate_graph  # noqa: E402
from tests import tiers  # noqa: E402
from tests.from_onnx import doors, suite  # noqa: E402
from tests.importers.models import tensors  # noqa: E402
from tests.networks.check import CPU, SIZES  # noqa: E402
from tests.networks.network import made  # noqa: E402
from tests.networks.networks import NETWORKS  # noqa: E402

SHARD_BY_TEST = True  # each row stands alone
SAME = (
    "transformers bert", "transformers llama", "transformers gpt_neox", "transformers bloom", "transformers albert",
    "transformers bart", "transformers clip", "transformers segformer", "transformers poolformer",
    "timm mobilenetv3_small_100", "timm convnextv2_atto", "timm mixer_s32_224", "timm resnet18", "timm cait_xxs24_224",
    "timm inception_v3", "timm davit_tiny",
    "transformers aimv2", "transformers arcee", "transformers bert-generation", "transformers bigbird_pegasus",
    "transformers bitnet", "transformers blenderbot", "transformers clipseg", "transformers ctrl",
    "transformers data2vec-vision", "transformers ernie4_5", "transformers esmc", "transformers glm_ocr_text",
    "transformers gte", "transformers hyperclovax_vision_v2", "transformers ibert", "transformers idefics3",
    "transformers internlm3", "transformers lfm2_vl", "transformers lfm3",
    "timm cspresnet50", "transformers pvt", "transformers pegasus", "transformers mobilebert", "transformers gpt_neo",
    "timm deit_tiny_patch16_224", "timm ghostnet_100", "timm fbnetc_100", "transformers distilbert", "transformers esm",
    "transformers blip", "transformers detr", "transformers stablelm",
)  # fmt: skip
"""Networks with the same launches by both."""
DIFFERENCES: dict[str, tuple[dict[str, int], str]] = {
    "timm volo_d1_224": ({"loops": 4}, "the exporter writes `unfold` as two reads by index"),
    "timm xcit_nano_12_p16_224": ({"gemm": -1}, "a product of constants, the position encodings, is computed in advance"),
    "transformers gemma4": (
        {"loops": 2, "rms_norm": -1},
        "a window of attention is a condition of the scores, keys are turned apart, and a scale is a number of the file",
    ),
    "transformers gemma": ({"loops": 1, "rms_norm": -1}, "the scale of embeddings is a number of the file"),
    "transformers gemma2": ({"loops": 1, "rms_norm": -2}, "the scale of embeddings is a number of the file"),
    "transformers granite_swa": (
        {"attention": 2, "bmm": -2, "softmax": -2},
        "attention becomes one op by ONNX; by PyTorch's import it stays products and a softmax",
    ),
    "transformers idefics3_vision": ({"loops": 5}, "the exporter writes `bucketize` as comparisons and sums"),
    "transformers layoutlm": (
        {"embedding": -1, "layer_norm": -1, "loops": 1},
        "embeddings, their sum and the norm behind it are one loop by ONNX",
    ),
}
"""How many more launches of each kind networks have by ONNX, and why, as docs/onnx.md says."""


@pytest.mark.parametrize("name", tiers.params([*SAME, *DIFFERENCES], ["transformers bert"]))
def test_both_doors_give_the_same_results_and_launches(name: str) -> None:
    network = NETWORKS[name]
    found = doors.remembered(name, network)
    assert not found.torch.error and not found.onnx.error
    assert doors.difference(found.torch.names, found.onnx.names) == DIFFERENCES.get(name, ({}, ""))[0]
    imported = import_model(doors.exported(name, network), dims=doors.dims_of(network))
    exact = copy.deepcopy(made(network)).double()
    for batch, length in SIZES:
        given = CPU.given(network, batch, length)
        with torch.no_grad():
            truth = tensors(exact(**{n: t.double() if t.is_floating_point() else t for n, t in given.items()}))
        arrays = dict(zip(imported.inputs, (t.numpy() for t in tensors(given)), strict=True))
        sizes = suite.dims_of(imported.graph, arrays)
        results = imported.named(evaluate_graph(imported.graph, imported.tensors(arrays), imported.constants, sizes))
        for value, expected in zip(results.values(), truth, strict=True):
            np.testing.assert_allclose(value, expected.numpy(), rtol=1e-4, atol=1e-4)
