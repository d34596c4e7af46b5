"""Imported models become the launches of the graphs that are written by hand, on a GPU that need not be there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch.export import Dim

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.dtypes import f8E4M3FN
from ait_mlir.driver import program_of, run_to_phase
from ait_mlir.frontend import build_module
from ait_mlir.importers.quantized import RECIPES
from ait_mlir.importers.quantized.layers import (
    Range,
    attentions_of,
    layers_of,
    needs_range,
    quantise_attentions,
    quantise_layers,
)
from ait_mlir.importers.torch import from_torch
from ait_mlir.options import CompileOptions
from ait_mlir.tools.report import report
from benchmarks import workloads
from benchmarks.imported import NOT_IMPORTED, import_workload
from tests import tiers

DIMS = {"batch": 2, "seq": 128}
IMPORTED = [name for name in workloads.MODELS if name not in NOT_IMPORTED]
HALF = torch.float16
BATCH, SEQ = Dim("batch", min=1, max=32), Dim("seq", min=1, max=512)
TOKENS = {"input_ids": {0: BATCH, 1: SEQ}}


def launches(module):
    """What `ait inspect --launches` shows of each: op, kernel with its configuration, shapes; independent ones sorted."""
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"))
    program = program_of(module)
    dims = {name: size for name, size in DIMS.items() if name in program.scope}
    return sorted((launch.op, launch.kernel, launch.shapes) for launch in report(module, program, dims).launches)


def workload(name, monkeypatch, dtype=HALF):
    """Two layers of a model at its full width; no weight is ever touched, so none takes memory."""
    monkeypatch.setattr(workloads.peer_bert, "randomize", lambda model, seed=0: model)
    entry = workloads.MODELS[name]
    sizes = [(b, s) for s in entry.lengths for b in entry.batches]
    with torch.device("meta"):
        work = entry.build(dtype, 2, sizes)
    work.peer.to_empty(device="cpu")
    return work, sizes


@pytest.mark.parametrize("name", IMPORTED)
def test_the_peer_imported_has_the_launches_of_the_graph_by_hand(name, monkeypatch):
    work, sizes = workload(name, monkeypatch)
    imported = import_workload(name, work, sizes)
    assert launches(imported.module) == launches(build_module(work.outputs, name))


def transformer(name, config, dtype=HALF, **options):
    """Two layers in a narrow type, but for buffers, as `from_pretrained(dtype=...)` makes them."""
    import transformers

    sizes = getattr(transformers, config)(num_hidden_layers=2, **options)
    torch.set_default_dtype(dtype)
    try:
        return getattr(transformers, name)(sizes).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def parts(op):
    """What an op consists of: versions of transformers write the steps of a rotation in different orders."""
    return tuple(sorted(op.split("_")))


LLAMA = {"num_attention_heads": 32, "num_key_value_heads": 32, "hidden_size": 4096, "intermediate_size": 11008}
LLAMA |= {"vocab_size": 1000, "use_cache": False, "rms_norm_eps": 1e-5}
IDS = {"input_ids": torch.zeros(2, 9, dtype=torch.long)}
# model of transformers, the graph by hand, what the one launches and the other does not
MODELS: dict[str, tuple[Any, ...]] = {
    "ViTForImageClassification": (
        lambda: transformer("ViTForImageClassification", "ViTConfig", num_labels=1000),
        {"pixel_values": torch.zeros(2, 3, 224, 224, dtype=HALF)},
        {"pixel_values": {0: BATCH}},
        "vit",
        ([], []),
    ),
    "BertModel": (  # ours by hand is the encoder alone; here the first norm adds rows of the tables
        lambda: transformer("BertModel", "BertConfig"),
        IDS,
        TOKENS,
        "bert",
        (["loops", "gemm_rcr_bias_tanh"], []),
    ),
    "GPT2LMHeadModel": (  # the positions are known: rows of the table instead of a gather
        lambda: transformer("GPT2LMHeadModel", "GPT2Config", use_cache=False),
        IDS,
        TOKENS,
        "gpt2",
        ([], ["embedding"]),
    ),
    "LlamaModel": (  # the positions are known: nothing to convert
        lambda: transformer("LlamaModel", "LlamaConfig", **LLAMA),
        IDS,
        TOKENS,
        "llama",
        (["fused_mul_cos_cast_cast_sin_2more"], ["fused_cast_mul_cos_cast_cast_3more"]),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_transformers_has_the_same_launches(name, monkeypatch):
    pytest.importorskip("transformers")
    make, inputs, dynamic, by_hand, differences = MODELS[name]
    work, _ = workload(by_hand, monkeypatch)
    compare(from_torch(make(), (), inputs, dynamic_shapes=dynamic), work, *differences)


NARROW = [(name, dtype) for name in ("LlamaModel", "Qwen2Model") for dtype in (HALF, torch.bfloat16)]


@pytest.mark.parametrize(("name", "dtype"), tiers.params(NARROW, NARROW[3:]), ids=str)
def test_both_narrow_types_have_the_same_launches(name, dtype, monkeypatch):
    """Norms and rotations that convert to f32 and back; Qwen2 differs from Llama in the biases of q, k and v."""
    pytest.importorskip("transformers")
    work, _ = workload("llama", monkeypatch, dtype)
    model = transformer(name, name.replace("Model", "Config"), dtype, **LLAMA)
    more, fewer = MODELS["LlamaModel"][-1]
    biases = 2 if name == "Qwen2Model" else 0
    imported = from_torch(model, (), IDS, dynamic_shapes=TOKENS)
    compare(imported, work, [*more, *["gemm_rcr_bias"] * biases], [*fewer, *["gemm_rcr"] * biases])


def compare(imported, work, more, fewer):
    """The launches of both sides differ in no others than these."""
    ours, written = (
        Counter(parts(op) for op, _, _ in launches(m)) for m in (imported.module, build_module(work.outputs))
    )
    assert ours - written == Counter(map(parts, more))
    assert written - ours == Counter(map(parts, fewer))


class Copied(torch.nn.Module):
    def forward(self, x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).index_copy(2, places, values).transpose(1, 2).contiguous()


def test_narrow_slices_that_are_replaced_are_read_in_the_loop_of_their_neighbours():
    inputs = torch.zeros(4096, 512, 13), torch.zeros(13, dtype=torch.int64), torch.zeros(4096, 512, 13)
    large = [op for op, _, shapes in launches(from_torch(Copied().eval(), inputs).module) if "4096" in str(shapes)]
    assert len(large) == 1 and "loops" in large[0]


class Block(torch.nn.Module):
    """A block of a decoder: attention and a gated MLP, behind norms."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (torch.nn.RMSNorm(512, eps=1e-5, dtype=HALF) for _ in range(2))
        sizes = {"q": 512, "k": 128, "v": 128, "o": 512, "gate": 1408, "up": 1408}
        self.layers = torch.nn.ModuleDict({n: torch.nn.Linear(512, size, bias=False, dtype=HALF) for n, size in sizes.items()})
        self.layers["down"] = torch.nn.Linear(1408, 512, bias=False, dtype=HALF)

    def forward(self, x):
        batch, seq, _ = x.shape
        h, at = self.norm1(x), self.layers
        q, k, v = (at[n](h).view(batch, seq, -1, 128).transpose(1, 2) for n in "qkv")
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + at["o"](y.transpose(1, 2).reshape(batch, seq, -1))
        h = self.norm2(x)
        return x + at["down"](torch.nn.functional.silu(at["gate"](h)) * at["up"](h))


class Encoder(torch.nn.Module):
    """A block of an encoder: norms behind the residual sums, which read the norms, too; and an MLP with a GELU."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (torch.nn.LayerNorm(512, dtype=HALF) for _ in range(2))
        sizes = {"q": 512, "k": 512, "v": 512, "o": 512, "up": 2048}
        self.layers = torch.nn.ModuleDict({n: torch.nn.Linear(512, size, dtype=HALF) for n, size in sizes.items()})
        self.layers["down"] = torch.nn.Linear(2048, 512, dtype=HALF)

    def forward(self, x):
        batch, seq, _ = x.shape
        at = self.layers
        q, k, v = (at[n](x).view(batch, seq, -1, 64).transpose(1, 2) for n in "qkv")
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + at["o"](y.transpose(1, 2).reshape(batch, seq, -1)))
        return self.norm2(x + at["down"](torch.nn.functional.gelu(at["up"](x))))


ROWS, BLOCKS = "gemm_rcr_mul_mul", "scaled_gemm"
BLOCK_LAUNCHES = {
    "fp8": ["loops", ROWS, "attention", "loops", f"{ROWS}_add", "loops", ROWS, "loops", f"{ROWS}_add"],
    "fp8-static": ["loops", ROWS, "attention", f"{ROWS}_add", "loops", ROWS, "loops", f"{ROWS}_add"],
    "fp8-static-attention": [
        *("loops", f"{ROWS}_div_clamp_cast_cast", "attention", f"{ROWS}_add"),
        *("loops", ROWS, "loops", f"{ROWS}_add"),
    ],
    "fp8-block": ["loops", BLOCKS, "attention", f"{BLOCKS}_add", "loops", BLOCKS, "loops", f"{BLOCKS}_add"],
}
"""Loops are a norm, of `fp8` what follows attention, a norm, and the gate: each of them also quantises."""


def encoder(product, attention, up, first="bias"):
    """The launches of an encoder's block, with attention and the product before the GELU, and what follows from each. The
    input is quantised by a launch of its own; a norm that the residual sum also reads is one launch with the numbers
    that it quantises."""
    return ["loops", f"{product}_{first}", *attention, f"{product}_bias_add", "loops", *up, f"{product}_bias_add", "layer_norm"]


ENCODER_LAUNCHES = {
    "fp8": encoder(ROWS, ["attention", "loops"], [f"{ROWS}_bias_gelu", "loops"]),
    "fp8-static": encoder(ROWS, ["attention"], [f"{ROWS}_bias_gelu_div_3more"]),
    "fp8-static-attention": encoder(
        ROWS, ["attention"], [f"{ROWS}_bias_gelu_div_3more"], first="bias_div_clamp_2more"
    ),
    "fp8-block": encoder(BLOCKS, ["attention", "loops"], [f"{BLOCKS}_bias_gelu", "loops"]),
}
QUANTISED = [(Block, BLOCK_LAUNCHES), (Encoder, ENCODER_LAUNCHES)]


@pytest.mark.parametrize(
    ("model", "recipe", "expected"),
    [(model, recipe, ops) for model, launched in QUANTISED for recipe, ops in launched.items()],
    ids=str,
)
def test_the_launches_of_a_quantised_block(model, recipe, expected):
    imported = from_torch(model().eval(), (torch.zeros(2, 512, 512, dtype=HALF),))
    module, constants, chosen = imported.module, imported.constants, RECIPES[recipe]
    layers = layers_of(module, chosen)
    ranges = {layer.name: Range(f8E4M3FN, 0.01) for layer in layers if needs_range(layer, chosen)}
    weights = {layer.name: chosen.store(layer.rows(layer.whole(constants))) for layer in layers}
    attentions = attentions_of(module, chosen)
    quantise_layers(layers, constants, chosen, weights, ranges)
    quantise_attentions(attentions, f8E4M3FN, {at.name: Range(f8E4M3FN, 0.02) for at in attentions})
    run_to_phase(module, "planned", CompileOptions("cuda", "sm_90a"))
    program = program_of(module)
    assert [launch.op for launch in report(module, program, {}).launches] == expected
    in_bytes = [op for op in module.walk() if isinstance(op, AttentionOp) and op.reads_float8]
    assert len(in_bytes) == int(recipe == "fp8-static-attention")
