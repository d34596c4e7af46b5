"""Small models of `torch.nn` and `transformers`, with random weights and nothing to download."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.export import Dim

from tests.importers.vision import timm

HALF = torch.float16
BATCH, SEQ = Dim("batch", min=1, max=8), Dim("seq", min=1, max=48)
VOCABULARY = 100


@dataclass(frozen=True)
class Case:
    """A model, how its arguments are made for a batch and a length, and which of their dims are dynamic."""

    make: Callable[[], torch.nn.Module]
    arguments: Callable[[int, int], dict[str, torch.Tensor]]
    dynamic: dict[str, Any] = field(default_factory=dict)
    attentions: int = 2
    """How many attentions must be found in it."""
    norms: int = 5
    """How many norms."""
    dtype: torch.dtype = torch.float32


def _transformer(name: str, config: str, **options: Any) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        import transformers

        return getattr(transformers, name)(getattr(transformers, config)(**options))

    return make


def _tokens(batch: int, seq: int) -> dict[str, torch.Tensor]:
    mask = torch.ones(batch, seq, dtype=torch.long)
    mask[0, max(1, seq - 2) :] = 0
    return {"input_ids": torch.randint(3, VOCABULARY, (batch, seq)), "attention_mask": mask}


def _ids(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, VOCABULARY, (batch, seq))}


def _image(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(batch, 3, 32, 32)}


TOKENS = {"input_ids": {0: BATCH, 1: SEQ}, "attention_mask": {0: BATCH, 1: SEQ}}
IDS = {"input_ids": {0: BATCH, 1: SEQ}}
SIZE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": 64, "use_cache": False}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2}
DISTIL = {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": VOCABULARY}
VIT = {**SIZE, "image_size": 32, "patch_size": 8}
GROUPED = {"num_key_value_heads": 2, "use_cache": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
T5 = {"d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16, "d_ff": 128, "vocab_size": VOCABULARY}
CLIP = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ENCODER = {"d_model": 64, "nhead": 4, "dim_feedforward": 128, "batch_first": True}


def _timm_vit() -> torch.nn.Module:
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4, "num_classes": 10}
    return timm().create_model("vit_tiny_patch16_224", **sizes)


def sequential() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4), nn.Softmax(-1))


def encoder(**options: Any) -> Callable[[], torch.nn.Module]:
    return lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(**ENCODER, **options), 2)


CASES: dict[str, Case] = {
    "Sequential": Case(
        sequential, lambda b, s: {"input": torch.randn(b, 16)}, {"input": {0: BATCH}}, attentions=0, norms=1
    ),
    "TransformerEncoder": Case(
        encoder(), lambda b, s: {"src": torch.randn(b, s, 64)}, {"src": {0: BATCH, 1: SEQ}}, norms=4
    ),
    "TransformerEncoder, norm first": Case(
        encoder(norm_first=True, activation="gelu"),
        lambda b, s: {"src": torch.randn(b, s, 64)},
        {"src": {0: BATCH, 1: SEQ}},
        norms=4,
    ),
    "BertModel": Case(_transformer("BertModel", "BertConfig", **SIZE), _tokens, TOKENS),
    "BertModel, no mask": Case(_transformer("BertModel", "BertConfig", **SIZE), _ids, IDS),
    "BertModel, eager attention": Case(
        _transformer("BertModel", "BertConfig", **SIZE, attn_implementation="eager"), _tokens, TOKENS
    ),
    "DistilBertModel": Case(_transformer("DistilBertModel", "DistilBertConfig", **DISTIL), _tokens, TOKENS),
    "GPT2Model": Case(_transformer("GPT2Model", "GPT2Config", **GPT2), _tokens, TOKENS),
    # the first norm is part of the loops that add the embeddings
    "RobertaModel": Case(_transformer("RobertaModel", "RobertaConfig", **SIZE), _tokens, TOKENS),
    "LlamaModel": Case(_transformer("LlamaModel", "LlamaConfig", **SIZE, **GROUPED), _tokens, TOKENS),
    "LlamaModel, eager attention": Case(
        _transformer("LlamaModel", "LlamaConfig", **SIZE, **GROUPED, attn_implementation="eager"), _ids, IDS
    ),
    "Qwen2Model": Case(_transformer("Qwen2Model", "Qwen2Config", **SIZE, **GROUPED), _tokens, TOKENS),
    "T5EncoderModel": Case(_transformer("T5EncoderModel", "T5Config", **T5), _tokens, TOKENS),
    "CLIPTextModel": Case(_transformer("CLIPTextModel", "CLIPTextConfig", **SIZE, **CLIP), _tokens, TOKENS),
    "ViTModel": Case(_transformer("ViTModel", "ViTConfig", **VIT), _image, {"pixel_values": {0: BATCH}}),
    "timm vit": Case(_timm_vit, lambda b, s: {"x": torch.randn(b, 3, 32, 32)}, {"x": {0: BATCH}}),
    "LlamaModel, half": Case(_transformer("LlamaModel", "LlamaConfig", **SIZE, **GROUPED), _tokens, TOKENS, dtype=HALF),
    "LlamaModel, bf16": Case(
        _transformer("LlamaModel", "LlamaConfig", **SIZE, **GROUPED), _tokens, TOKENS, dtype=torch.bfloat16
    ),
    "Qwen2Model, bf16": Case(
        _transformer("Qwen2Model", "Qwen2Config", **SIZE, **GROUPED), _tokens, TOKENS, dtype=torch.bfloat16
    ),
    "T5EncoderModel, half": Case(
        _transformer("T5EncoderModel", "T5Config", **T5), _tokens, TOKENS, dtype=HALF
    ),
    "GPT2Model, half": Case(_transformer("GPT2Model", "GPT2Config", **GPT2), _tokens, TOKENS, dtype=HALF),
}


def tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors of a model's result, in order."""
    return [t for t in torch.utils._pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def prepared(name: str) -> torch.nn.Module:
    """A model with weights that matter: norms scale and shift."""
    if "Model" in name:
        pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = CASES[name].make().to(CASES[name].dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    return model
