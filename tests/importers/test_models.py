"""Models as they are, imported, compiled for the CPU and run at several dims from one artifact, beside PyTorch."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch

import ait_mlir
from ait_mlir.driver import run_to_phase
from ait_mlir.importers.torch import from_torch, import_program
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from benchmarks import import_time, measure
from tests import tiers
from tests.importers.models import CASES, prepared, tensors

DIMS = ((1, 5), (3, 16), (8, 33))
# The most launches that a model may become.
LAUNCHES = {
    "Sequential": 4,
    "TransformerEncoder": 14,
    "TransformerEncoder, norm first": 14,
    "BertModel": 19,
    "BertModel, no mask": 17,
    "BertModel, eager attention": 19,
    "DistilBertModel": 18,
    "GPT2Model": 18,
    "GPT2Model, half": 18,
    "RobertaModel": 20,
    "LlamaModel": 26,
    "LlamaModel, eager attention": 24,
    "LlamaModel, half": 27,
    "LlamaModel, bf16": 27,
    "Qwen2Model": 26,
    "Qwen2Model, bf16": 27,
    "T5EncoderModel": 22,
    "T5EncoderModel, half": 23,
    "CLIPTextModel": 22,
    "ViTModel": 19,
    "timm vit": 19,
}
NORMS = re.compile("= ait.(?:layer|rms)_norm ")


def in_dtype(tree, dtype):
    return {n: t.to(dtype) if t.is_floating_point() else t for n, t in tree.items()}


FULL = {
    "TransformerEncoder",
    "BertModel, no mask",
    "RobertaModel",
    "LlamaModel, eager attention",
    "LlamaModel, half",
    "Qwen2Model",
    "T5EncoderModel",
    "timm vit",
    "GPT2Model, half",
}
"""Of each of these the sample has a sibling: the same model in another type, or another model with the same layers."""


@pytest.mark.parametrize("name", tiers.params(CASES, CASES.keys() - FULL))
def test_a_model_agrees_with_pytorch(name, tmp_path, record_property):
    case, model = CASES[name], prepared(name)
    compiled = ait_mlir.compile(model, (), in_dtype(case.arguments(2, 7), case.dtype), dynamic_shapes=case.dynamic)
    launches = compiled.ir("planned").count("ait_rt.launch")
    # short norms become loops, so they are counted before
    fused = str(run_to_phase(
        compiled.imported.module.clone(), "fused", CompileOptions(without=["form-loops"]),
        known=compiled.imported.constants.keys(),
    ))
    counts = {"attention": fused.count("= ait.attention "), "norms": len(NORMS.findall(fused)), "launches": launches}
    record_property("model", name)
    record_property("dims", ", ".join(f"{batch} x {seq}" for batch, seq in DIMS))
    record_property("operations", compiled.operations)
    record_property("counts", counts)
    exact = copy.deepcopy(model).double()
    sides: list[list[list[torch.Tensor]]] = []
    with torch.no_grad():
        for batch, seq in DIMS:
            for _ in range(max(1, 64 // (batch * seq))):  # enough numbers for a ratio of errors to mean something
                given = in_dtype(case.arguments(batch, seq), case.dtype)
                ours, eager = compiled(**given), model(**given)
                assert type(ours) is type(eager)
                sides.append([tensors(ours), tensors(eager), tensors(exact(**in_dtype(given, torch.float64)))])
    results = []
    for i in range(len(sides[0][0])):
        ours, eager, truth = (torch.cat([s[k][i].flatten() for s in sides]) for k in range(3))
        results.append(measure.accuracy(ours, eager, truth))
    record_property("ratios", [(r.max_ratio, r.rmse_ratio) for r in results])
    assert all(r.passed for r in results), results
    assert (counts["attention"], counts["norms"]) == (case.attentions, case.norms)
    assert launches <= LAUNCHES[name]
    assert "ait.softmax" not in fused or case.attentions == 0
    given = in_dtype(case.arguments(2, 3), case.dtype)
    saved = Model(compiled.save(tmp_path / "model.ait"))
    arrays = {n: t.numpy() for n, t in given.items()}
    (alone, *_), (with_torch, *_) = saved.run_with_tensors(arrays).values(), tensors(compiled(**given))
    np.testing.assert_array_equal(alone.astype(np.float64), with_torch.double().numpy())


def test_shared_weights_are_stored_once():
    tied = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.ReLU(), torch.nn.Linear(8, 8, bias=False))
    tied[2].weight = tied[0].weight
    compiled = ait_mlir.compile(tied.eval(), (torch.randn(2, 8),))
    assert compiled.model.get_constant_names(False) == ["0.weight"]


def test_positions_are_slices_and_masks_disappear():
    pytest.importorskip("transformers")
    case, model = CASES["BertModel, no mask"], prepared("BertModel, no mask")
    text = from_torch(model, (), case.arguments(2, 7), dynamic_shapes=case.dynamic).module
    text = str(text)
    assert "batch = 1 to 8, seq = 1 to 48" in text
    assert text.count("ait.embedding") == 1 and "ait.where" not in text and "position_ids" not in text


def test_a_causal_mask_becomes_an_attribute():
    pytest.importorskip("transformers")
    case, model = CASES["GPT2Model"], prepared("GPT2Model")
    text = str(from_torch(model, (), case.arguments(2, 7), dynamic_shapes=case.dynamic).module)
    assert text.count(" causal : ") == 2
    assert text.count("ait.where") == 1  # the padding, once for all layers


def test_the_import_is_linear_in_the_layers():
    def layers(count):
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        program = torch.export.export(torch.nn.TransformerEncoder(layer, count).eval(), (torch.randn(2, 3, 16),))
        return len(list(import_program(program).graph.block.ops))

    few, more, most = layers(2), layers(4), layers(8)
    assert most - more == 2 * (more - few)


@pytest.mark.parametrize("name", tiers.params(import_time.MODELS, ["GPT2Model"]))
def test_an_import_of_twelve_layers_is_quick(name):
    pytest.importorskip("transformers")
    _, imported, _ = import_time.seconds(name, 12)
    assert imported <= 3.0  # seconds of CPU time on top of torch.export
