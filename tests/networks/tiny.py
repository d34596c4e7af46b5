"""Small configurations of the model types of `transformers`, by the names of their options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import torch

VOCABULARY = 100
SIZES: dict[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "decoder_hidden_size", "lru_width"),
        64,
    ),
    **dict.fromkeys(
        ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "depth"), 2
    ),
    **dict.fromkeys(("num_decoder_layers", "decoder_num_layers", "decoder_num_hidden_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("num_encoder_hidden_layers", "num_decoder_hidden_layers", "encoder_num_hidden_layers"), 2),
    **dict.fromkeys(
        ("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads"),
        4,
    ),
    **dict.fromkeys(("encoder_num_attention_heads", "decoder_num_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_experts_per_tok", "num_global_key_value_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "global_head_dim", "v_head_dim", "qk_nope_head_dim", "kv_lora_rank"), 16),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "d_ff", "dim_feedforward", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner"),
        128,
    ),
    **dict.fromkeys(("mlp_dim", "ffn_hidden_size", "decoder_intermediate_size", "hidden_dim", "ffn_size"), 128),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "n_ctx"), 64),
    **dict.fromkeys(("projection_dim", "moe_intermediate_size", "q_lora_rank", "expert_intermediate_size"), 32),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("sliding_window", "attention_window_size", "state_size", "mamba_d_state", "qk_rope_head_dim"), 8),
    **dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace", "n_shared_experts", "type_vocab_size"), 1),
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 16,
    "image_size": 32,
    "patch_size": 8,
    "moe_topk": 2,
    "use_cache": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "num_queries": 8,
    "drop_path_rate": 0.0,
}
"""A small value of each option that a type may have."""

ONES = ("depths", "num_block_repeats", "layer_depths", "stage_num_blocks")
"""Options with one number of layers for each stage."""

WIDTHS = ("hidden_sizes", "embed_dims", "encoder_hidden_sizes", "neck_hidden_sizes", "stage_channels")
"""Options with one width for each stage."""


def options(kind: type, more: Mapping[str, Any] = {}) -> dict[str, Any]:
    """The options of a class of configurations that make its models small; `more` overrides them."""
    found: dict[str, Any] = {}
    for name, default in _defaults(kind).items():
        if name in ONES and isinstance(default, list | tuple):
            found[name] = type(default)(1 for _ in default)
        elif name in WIDTHS and isinstance(default, list | tuple):
            found[name] = type(default)(max(16, value // 64 * 8) for value in default)
        elif name in SIZES and not isinstance(default, list | tuple | dict):
            found[name] = SIZES[name]
        elif name in SIZES and isinstance(default, list | tuple) and name in ("image_size", "patch_size"):
            found[name] = type(default)(SIZES[name] for _ in default)
        elif name.endswith(("_token_id", "_token_index")) and isinstance(default, int) and default >= VOCABULARY:
            found[name] = VOCABULARY - 1
    parts: Mapping[str, type] = getattr(kind, "sub_configs", {})
    if parts:
        whole = kind()
        for name in parts:
            part = getattr(whole, name, None)
            if part is not None:
                found[name] = {**options(type(part)), "model_type": part.model_type}
    for name, value in more.items():
        found[name] = (
            {**found[name], **value} if isinstance(found.get(name), dict) and isinstance(value, dict) else value
        )
    return found


def _defaults(kind: type) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        return {
            f.name: f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
            for f in dataclasses.fields(kind)
        }
    return {n: p.default for n, p in inspect.signature(kind.__init__).parameters.items()}


def model(model_type: str, more: Mapping[str, Any] = {}) -> torch.nn.Module:
    """A small model of the type with random weights; raises `ValueError` if it has over 30 million of them."""
    import transformers

    kind = transformers.CONFIG_MAPPING[model_type]
    config = kind(**options(kind, more))
    with torch.device("meta"):
        count = sum(p.numel() for p in transformers.AutoModel.from_config(config).parameters())
    if count > 30_000_000:
        raise ValueError(f"{model_type} has {count} weights")
    return transformers.AutoModel.from_config(config)
