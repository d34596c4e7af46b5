"""Networks of `transformers` that read text, sound, or text beside images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tests.networks.network import BATCH, LENGTH, Arguments, Network

VOCABULARY = 100


def built(model_type: str, **options: Any) -> Callable[[], torch.nn.Module]:
    """The base model of a type with a configuration of these options."""

    def make() -> torch.nn.Module:
        import transformers

        config = transformers.CONFIG_MAPPING[model_type](**options)
        return transformers.AutoModel.from_config(config)

    return make


def ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length))


def with_mask(batch: int, length: int) -> Arguments:
    """Tokens, the last of which are padding in the first row."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, max(1, length - 2) :] = 0
    return {"input_ids": ids(batch, length), "attention_mask": mask}


def without_mask(batch: int, length: int) -> Arguments:
    return {"input_ids": ids(batch, length)}


def to_translate(batch: int, length: int) -> Arguments:
    """A text, and the beginning of its translation."""
    return {**with_mask(batch, length), "decoder_input_ids": ids(batch, 5)}


def sound(batch: int, length: int) -> Arguments:
    return {"input_values": torch.randn(batch, 800)}


def spectrum(batch: int, length: int) -> Arguments:
    return {"input_features": torch.randn(batch, 16, 64), "decoder_input_ids": ids(batch, 5)}


def captioned(batch: int, length: int) -> Arguments:
    return {**with_mask(batch, length), "pixel_values": torch.randn(batch, 3, 32, 32)}


def captioned_in_full(batch: int, length: int) -> Arguments:
    return {"input_ids": ids(batch, 8), "pixel_values": torch.randn(batch, 3, 32, 32)}


def with_image_tokens(batch: int, length: int) -> Arguments:
    """Tokens, four of which stand for an image."""
    tokens = torch.randint(3, VOCABULARY - 1, (batch, 12))
    tokens[:, 2:6] = VOCABULARY - 1
    return {"input_ids": tokens, "pixel_values": torch.randn(batch, 3, 32, 32)}


def of_batch(arguments: Callable[[int, int], Arguments], sequences: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """The batch is dynamic in every argument, and the length in some."""
    return {name: {0: BATCH, 1: LENGTH} if name in sequences else {0: BATCH} for name in arguments(2, 8)}


def network(
    model_type: str,
    arguments: Callable[[int, int], Arguments],
    *options: Mapping[str, Any],
    sequences: tuple[str, ...] = ("input_ids", "attention_mask"),
    sampled: bool = False,
    **more: Any,
) -> Network:
    """A row: options in several groups; later groups override earlier ones."""
    merged: dict[str, Any] = {}
    for group in options:
        merged |= group
    return Network(built(model_type, **merged, **more), arguments, of_batch(arguments, sequences), sampled)


SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ENCODER = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    **SPECIAL,
}
DECODER = {**ENCODER, "use_cache": False}
GROUPED = {**DECODER, "num_key_value_heads": 2}
HEADS = {**GROUPED, "head_dim": 16}
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": 64, "use_cache": False}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2}
BOTH = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4}
BOTH |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "use_cache": False}
TRANSLATOR = {**BOTH, "vocab_size": VOCABULARY, "max_position_embeddings": 64, **SPECIAL, "decoder_start_token_id": 2}
SOUND = {
    **{k: ENCODER[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")},
    "conv_dim": (32, 32, 32),
    "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3),
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
TEXT_PART = {**ENCODER, "projection_dim": 32}
IMAGE_PART = {k: ENCODER[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}
IMAGE_PART |= {"image_size": 32, "patch_size": 8}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
TINY_MAMBA = {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "vocab_size": VOCABULARY, "use_cache": False}
TINY_MAMBA |= {"time_step_rank": 4, **SPECIAL}

ENCODERS = {
    "bert": network("bert", with_mask, ENCODER),
    "roberta": network("roberta", with_mask, ENCODER),
    "albert": network("albert", with_mask, ENCODER, embedding_size=32),
    "electra": network("electra", with_mask, ENCODER, embedding_size=32),
    "deberta": network("deberta", with_mask, ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "deberta_v2": network(
        "deberta-v2", with_mask, ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=16
    ),
    "mpnet": network("mpnet", with_mask, ENCODER),
    "bigbird": network("big_bird", with_mask, ENCODER, attention_type="original_full"),
    "fnet": network("fnet", without_mask, ENCODER, sequences=()),
    "convbert": network("convbert", with_mask, ENCODER, embedding_size=32),
    "mobilebert": network(
        "mobilebert", with_mask, ENCODER, sequences=(), embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32
    ),
    "squeezebert": network("squeezebert", with_mask, ENCODER, embedding_size=64),
    "modernbert": network("modernbert", with_mask, ENCODER, SPECIAL, cls_token_id=1, sep_token_id=2, local_attention=8),
    "distilbert": network(
        "distilbert", with_mask, SPECIAL, dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=VOCABULARY
    ),
    "roformer": network("roformer", with_mask, ENCODER, embedding_size=64),
    "esm": network("esm", with_mask, ENCODER, position_embedding_type="rotary", mask_token_id=3),
}

DECODERS = {
    "llama": network("llama", with_mask, GROUPED),
    "gpt_oss": network("gpt_oss", with_mask, HEADS, EXPERTS, sliding_window=8),
    "gpt2": network("gpt2", with_mask, GPT2),
    "gpt_neo": network(
        "gpt_neo", with_mask, DECODER, {"num_layers": 2, "num_heads": 4, "window_size": 8},
        attention_types=[[["global", "local"], 1]],
    ),
    "gptj": network("gptj", with_mask, GPT2, rotary_dim=8),
    "gpt_neox": network("gpt_neox", with_mask, DECODER),
    "opt": network("opt", with_mask, DECODER, ffn_dim=128, word_embed_proj_dim=64),
    "bloom": network("bloom", with_mask, SPECIAL, hidden_size=64, n_layer=2, n_head=4, vocab_size=VOCABULARY, use_cache=False),
    "mistral": network("mistral", with_mask, HEADS, sliding_window=8),
    "mixtral": network("mixtral", with_mask, GROUPED, EXPERTS),
    "qwen2": network("qwen2", with_mask, GROUPED),
    "qwen3": network("qwen3", with_mask, HEADS),
    "gemma": network("gemma", with_mask, HEADS),
    "gemma2": network("gemma2", with_mask, HEADS, sliding_window=8),
    "phi": network("phi", with_mask, DECODER),
    "phi3": network("phi3", with_mask, GROUPED),
    "falcon": network("falcon", with_mask, DECODER),
    "mpt": network(
        "mpt", with_mask, d_model=64, n_heads=4, n_layers=2, max_seq_len=64, vocab_size=VOCABULARY, use_cache=False
    ),
    "stablelm": network("stablelm", with_mask, GROUPED),
    "starcoder2": network("starcoder2", with_mask, GROUPED),
    "olmo2": network("olmo2", with_mask, GROUPED),
    "cohere": network("cohere", with_mask, GROUPED),
    "granite": network("granite", with_mask, GROUPED),
    "deepseek_v3": network(
        "deepseek_v3", with_mask, DECODER, num_key_value_heads=4, moe_intermediate_size=32, n_routed_experts=8,
        n_group=2, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1, kv_lora_rank=16, q_lora_rank=32,
        qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
    ),
    "mamba": network("mamba", without_mask, TINY_MAMBA),
    "falcon_mamba": network("falcon_mamba", without_mask, TINY_MAMBA),
    "jamba": network(
        "jamba", without_mask, GROUPED, num_experts=4, num_experts_per_tok=2, mamba_d_state=8, mamba_dt_rank=4,
        attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
    ),
    "recurrent_gemma": network(
        "recurrent_gemma", without_mask, HEADS, {"num_key_value_heads": 1}, lru_width=64, attention_window_size=8,
        block_types=["recurrent", "attention"],
    ),
    "rwkv": network(
        "rwkv", without_mask, SPECIAL, hidden_size=32, num_hidden_layers=2, context_length=64, vocab_size=VOCABULARY,
        use_cache=False,
    ),
    "xlstm": network(
        "xlstm", without_mask, SPECIAL, hidden_size=64, embedding_dim=64, num_hidden_layers=2, num_blocks=2, num_heads=4,
        vocab_size=VOCABULARY, use_cache=False, chunk_size=64, return_last_states=False, mode="inference",
    ),
}  # fmt: skip

TRANSLATORS = {
    "t5": network(
        "t5", to_translate, SPECIAL, d_model=64, num_layers=2, num_heads=4, d_kv=16, d_ff=128, vocab_size=VOCABULARY,
        use_cache=False, decoder_start_token_id=0, sampled=True,
    ),
    "bart": network("bart", to_translate, TRANSLATOR),
    "marian": network("marian", to_translate, TRANSLATOR, decoder_vocab_size=VOCABULARY),
    "pegasus": network("pegasus", to_translate, TRANSLATOR),
    "whisper": network(
        "whisper", spectrum, TRANSLATOR, num_mel_bins=16, max_source_positions=32, max_target_positions=32
    ),
}  # fmt: skip

LISTENERS = {
    "wav2vec2": network("wav2vec2", sound, SOUND, sequences=()),
    "hubert": network("hubert", sound, SOUND, sequences=()),
}

BESIDE_IMAGES = {
    "clip": network("clip", captioned, text_config=TEXT_PART, vision_config=IMAGE_PART, projection_dim=32),
    "siglip": network(
        "siglip", captioned_in_full, sequences=(), text_config={**ENCODER, "max_position_embeddings": 8},
        vision_config=IMAGE_PART,
    ),
    "blip": network("blip", captioned, text_config=TEXT_PART, vision_config=IMAGE_PART, projection_dim=32),
    "gemma3": network(
        "gemma3", with_image_tokens, sequences=(), text_config={**HEADS, "sliding_window": 8},
        vision_config=IMAGE_PART, mm_tokens_per_image=4, image_token_index=VOCABULARY - 1, image_token_id=VOCABULARY - 1,
    ),
}  # fmt: skip

LANGUAGE: dict[str, Network] = {
    f"transformers {name}": row
    for group in (ENCODERS, DECODERS, TRANSLATORS, LISTENERS, BESIDE_IMAGES)
    for name, row in group.items()
}
