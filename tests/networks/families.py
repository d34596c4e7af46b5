"""Many more architectures: types of `transformers` with small configurations, and models of `timm`, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from tests.networks import tiny
from tests.networks.language import captioned, of_batch, sound, to_translate, with_mask, without_mask
from tests.networks.network import Arguments, Network
from tests.networks.vision import of_timm

TEXT = """
    gpt-sw3 afmoe apertus arcee aria aria_text audioflamingo3 aya_vision bailing_hybrid bamba beam bert-generation
    biogpt bitnet camembert canine clip_text_model cohere2 cohere2_moe cosmos3_omni cpmant ctrl cwm data2vec-text
    deepseek_v4 deepseek_vl_hybrid diffllama doge dots1 dpr embedding_gemma2 embedding_gemma2_text ernie ernie4_5
    eurobert exaone4 exaone4_5 exaone_moe falcon_h1 fastspeech2_conformer flava flex_olmo flint gemma3_text gemma4
    gemma4_text gemma4_unified gemma4_unified_text git glm glm4 glm4_moe glmasr got_ocr2 gpt_bigcode
    gpt_neox_japanese granite_docling_text granite_speech granite_swa granitemoe granitemoe_swa granitemoehybrid
    granitemoeshared gte helium higgs_audio_v2 hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4 hyperclovax
    hyperclovax_vision_v2 ibert idefics3 imagegpt inkling2_text inkling_mm_model inkling_text internlm3 internvl
    iquestcoder jais2 jina_embeddings_v3 kimi_linear kolibri1 kosmos-2.5 laguna layoutlm lfm2 lfm2_vl lfm3 lfm3_vl
    lighton_ocr llama4_text llava llava_next_video llava_onevision markuplm megatron-bert mellum mimo_v2_flash
    minicpm_ocr minicpmv4_6 minicpmv4_7 minimax minimax_m2 minimax_m3_vl minimax_m3_vl_text ministral ministral3
    mistral3 mllama modernbert-decoder modernvbert molmo2_text moshi mra muse_glimmer_text muse_spark_text
    musicflamingo nanochat nemotron nemotron_h neomme nomic_bert nystromformer olmo olmo3 olmo_hybrid olmoe
    openai-gpt ovis2 paligemma persimmon phimoe qwen2_audio qwen2_moe qwen3_5 qwen3_5_moe qwen3_5_moe_text
    qwen3_5_text qwen3_asr qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text qwen4_exp
    qwen4_exp_text rembert roberta-prelayernorm sam3_lite_text_text_model seed_oss smollm3 smolvlm solar_open
    splinter step3p7 tapas tipsv2 tipsv2_text_model ultrabert ultravbert unlimited_ocr vaultgemma video_llama_3
    vipllava visual_bert xglm xlm-roberta xlm-roberta-xl xlnet yoso
    """
"""Types that read tokens."""

TRANSLATORS = """
    bigbird_pegasus blenderbot blenderbot-small led longt5 m2m_100 mbart mt5 mvp nllb-moe pegasus_x plbart
    prophetnet switch_transformers t5gemma t5gemma2 umt5
    """
"""Types that read a text and the beginning of another."""

IMAGES = """
    aimv2_vision_model chinese_clip_vision_model clip_vision_model data2vec-vision dinov2_with_registers dinov3_vit
    dpt focalnet hiera idefics3_vision ijepa internvl_vision mgp-str mlcd_vision_model mobilenet_v1 pixio pixtral
    qianfan_ocr_vision radio regnet rf_detr sam3_vision_model sam3_vit_model sam_hq_vision_model sam_vision_model
    sapiens2 siglip_vision_model smolvlm_vision swiftformer tipsv2_vision_model vit_mae vit_msn vitdet mlcd
    """
"""Types that read images of 32 x 32."""

SOUNDS = """
    data2vec-audio sew sew-d unispeech wav2vec2-conformer wavlm
    """
"""Types that read samples of sound."""

TIMM: tuple[tuple[int, Mapping[str, Any], str], ...] = (
    (
        64,
        {"depth": 2, "img_size": 64},
        """
        beitv2_base_patch16_224 convit_tiny deit3_small_patch16_224 deit_tiny_distilled_patch16_224
        eva_giant_patch14_224 vit_pe_core_tiny_patch16_384 vit_pe_spatial_tiny_patch16_512 vit_small_patch16_dinov3
        vit_small_patch16_dinov3_qkvb vit_small_patch16_rope_224 vit_small_patch16_rope_mixed_224
        vit_small_patch16_rope_ape_224 vit_medium_patch16_rope_reg1_gap_256 vit_mediumd_patch16_rope_reg1_gap_256
        vit_base_patch16_lingbot eva02_base_patch14_224 gemma4_vit_167m naflexvit_base_patch16_gap
        naflexvit_base_patch16_map naflexvit_base_patch16_parfac_gap naflexvit_base_patch16_siglip qwen3_vit_88m
        qwen3_vit_88m_merge qwen3_vit_88m_enc tnt_s_patch16_224 tnt_s_legacy_patch16_224 visformer_tiny
        aimv2_large_patch14_224 beit3_base_patch16_224 vit_base_patch14_dinov2 vit_small_patch14_reg4_dinov2
        vit_base_patch16_clip_224 vit_base_patch16_clip_quickgelu_224 vit_base_patch16_siglip_224
        vit_base_patch16_siglip_gap_224 vit_base_patch16_rpn_224 vit_base_patch16_xp_224 vit_small_patch16_18x2_224
        vit_small_patch16_36x1_224 vit_little_patch16_reg4_gap_256 vit_wee_patch16_reg1_gap_256
        vit_pwee_patch16_reg1_gap_256 vit_so150m_patch16_reg4_map_256 vit_so150m2_patch16_reg1_gap_256
        vit_dwee_patch16_reg1_gap_256 vit_dlittle_patch16_reg1_gap_256 vit_dpwee_patch16_reg1_gap_256
        vit_base_patch16_gap_224 flexivit_small test_vit test_vit2 test_vit3 test_vit4 vit_xsmall_patch16_clip_224
        vit_base_patch16_radio_v3 vit_tiny_r_s16_p8_224 vit_small_r26_s32_224 vit_small_resnet26d_224 vit_base_mci_224
        test_vit_relpos vit_relpos_small_patch16_224 vit_srelpos_small_patch16_224 vit_relpos_base_patch16_cls_224
        vit_relpos_medium_patch16_rpn_224 samvit_base_patch16_224 vitamin_small_224 xcit_nano_12_p8_224
        xcit_tiny_12_p16_224
        """,
    ),
    (
        64,
        {"img_size": 64},
        """
        botnet26t_256 eca_botnext26ts_256 lambda_resnet26rpt_256 lambda_resnet26t sebotnet33ts_256 gcresnet33ts
        gcresnext26ts gernet_s mobileone_s0 regnetz_b16 regnetz_b16_evos repvgg_b1g4 resnet50_clip resnet50_clip_gap
        resnet32ts resnext26ts eca_resnext26ts seresnext26ts coat_lite_tiny coat_tiny efficientvit_m0 gcvit_xxtiny
        hiera_tiny_224 hiera_small_abswin_256 levit_conv_128s levit_256d levit_384_s8 gmixer_12_224 resmlp_big_24_224
        mixer_b16_224 mobilevit_s mobilevitv2_050 mvitv2_tiny mvitv2_small_cls nest_tiny_jx pit_ti_224
        pit_ti_distilled_224 repvit_m0_9 repvit_m1 volo_d2_224 test_byobnet
        """,
    ),
    (
        64,
        {"depths": (1, 1, 1, 1)},
        """
        edgenext_small convnext_atto_ols convnext_atto_rms convnext_tiny_hnf convnext_zepto_rms convnext_zepto_rms_ols
        cspnext_tiny davit_base_fl efficientvit_b0 efficientvit_l1 fasternet_t0 inception_next_tiny lcnetv2_small
        mambaout_femto mambaout_small_rw mambaout_base_plus_rw test_mambaout eca_nfnet_l0 nf_ecaresnet50 nf_regnet_b0
        nf_resnet26 nf_seresnet26 nfnet_l0 nfnet_f0 pvt_v2_b2_li starnet_s1 starnet_s050 tiny_vit_5m_224 test_convnext
        test_convnext2 test_convnext3 test_nfnet
        """,
    ),
    (
        64,
        {},
        """
        cpubone_nano cpubone_s0 cpubone_b1_dwnorm crossvit_9_dagger_240 cs3darknet_focus_s cs3darknet_s cs3edgenet_x
        cs3se_edgenet_x cs3sedarknet_xdw cspdarknet53 cspresnet50d cspresnext50 darknetaa53 sedarknet21 densenet121
        densenetblur121d dla46_c dla46x_c dla60_res2net dla60_res2next dpn48b dpn68b efficientnet_b0
        efficientnet_b3_g8_gn efficientnet_cc_b0_4e efficientnetv2_s efficientnet_lite0 efficientnet_es mixnet_s
        mobilenet_edgetpu_100 mnasnet_small mobilenetv1_100 semnasnet_075 spnasnet_100 tinynet_e mobilenet_edgetpu_v2_xs
        test_efficientnet test_efficientnet_gn test_efficientnet_ln test_efficientnet_evos tf_efficientnet_b0
        tf_efficientnetv2_b0 tf_mixnet_s fastvit_mci3 focalnet_tiny_srf focalnet_tiny_lrf ghostnetv2_100 ghostnetv3_050
        hardcorenas_a hgnet_tiny hgnetv2_b1 sam2_hiera_tiny hieradet_small hrnet_w18_ssld iformer_t iformer_m
        lowformer_b0 lowformer_e1 caformer_s18 convformer_s18 poolformerv2_s12 fbnetv3_b mobilenetv3_large_100
        mobilenetv3_rw mobilenetv4_conv_aa_medium mobilenetv4_conv_small_050 mobilenetv4_hybrid_medium_075
        tf_mobilenetv3_small_minimal_100 nasnetalarge nextvit_small pnasnet5large rdnet_tiny regnetv_040 regnetx_002
        regnetz_005 repghostnet_050 resnetv2_50x1_bit rexnet_100 rexnetr_100 selecsls42 selecsls60b shvit_s1 vgg11_bn
        eca_vovnet39b ese_vovnet19b_slim ese_vovnet39b_evos vovnet39a legacy_xception xception41p
        """,
    ),
    (
        64,
        {"depths": (2, 2, 2, 2)},
        """
        csatv2 edgenext_small_rw
        """,
    ),
    (
        56,
        {"depth": 2, "img_size": 56},
        """
        deepseek_vit_412m deepseek_vit_412m_enc vit_intern300m_patch14_448
        """,
    ),
    (
        64,
        {"depths": (1, 1, 1, 1), "img_size": 64},
        """
        efficientformerv2_s0 coatnet_0_224 coatnet_bn_0_rw_224 coatnet_rmlp_nano_rw_224 coatnext_nano_rw_224
        maxvit_rmlp_pico_rw_256 maxvit_tiny_tf_224 maxvit_tiny_pm_256 maxxvit_rmlp_nano_rw_256 maxxvitv2_nano_rw_256
        test_coatnet test_maxvit swin_tiny_patch4_window7_224 swin_s3_tiny_224 swinv2_base_window8_256
        swinv2_cr_tiny_224 swinv2_cr_tiny_ns_224 twins_pcpvt_small
        """,
    ),
    (
        64,
        {"depths": (1, 1, 1)},
        """
        efficientvim_m1
        """,
    ),
    (
        64,
        {"layers": (1, 1, 1, 1)},
        """
        fastvit_sa12 fastvit_ma36 fastvit_mci0 res2net50_14w_8s res2net50d res2next50 resnest14d resnest50d_4s2x40d
        ecaresnet26t ecaresnetlight resnet14t resnet50s resnet26d resnetaa34d resnetblur18 resnetblur50d resnetrs50
        seresnet18 seresnext26d_32x4d seresnext26t_32x4d test_resnet wide_resnet50_2 seresnextaa101d_32x8d resnetv2_18
        resnetv2_18d resnetv2_50d_evos resnetv2_50d_frn resnetv2_50d_gn resnetv2_50t legacy_senet154 legacy_seresnet18
        legacy_seresnext26_32x4d skresnet18 skresnet50d skresnext50_32x4d tresnet_m tresnet_v2_l
        """,
    ),
    (
        96,
        {"depth": 2},
        """
        gemma4_vit_167m_enc
        """,
    ),
    (
        96,
        {},
        """
        inception_resnet_v2 inception_v4
        """,
    ),
    (
        64,
        {"layers": (1, 1, 1, 1), "img_size": 64},
        """
        sequencer2d_s swiftformer_xs
        """,
    ),
)
"""Names of `timm` by the size of their images and the options that make them small."""

SMALL_SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": (2, 2),
    "num_heads": (2, 4),
    "window_size": 4,
}
SECTIONS = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
LATENT = {"num_key_value_heads": 4}
"""Attention with compressed keys and values."""
MAMBA2 = {"num_hidden_layers": 2, "n_mamba_heads": 4, "mamba_d_state": 8, "chunk_size": 8}
FRAMES = {"image_size": 16, "num_frames": 4}

OVERRIDES: dict[str, Mapping[str, Any]] = {
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "minicpm3", "mistral4", "youtu", "axk1", "axk2"),
        LATENT,
    ),
    **dict.fromkeys(("qwen2_vl_text", "qwen2_5_vl_text", "glm4v_text", "glm_image_text", "glm_ocr_text"), SECTIONS),
    "mistral_large4_text": LATENT,
    "codegen": {"rotary_dim": 8},
    "swinv2": SMALL_SWIN,
    "donut-swin": SMALL_SWIN,
    "maskformer-swin": SMALL_SWIN,
    "swin2sr": {**SMALL_SWIN, "patch_size": 1, "window_size": 8},
    "mamba2": {"hidden_size": 32, "num_heads": 4, "head_dim": 16, "n_groups": 2, "chunk_size": 8},
    "esmc": {"hidden_size": 64, "num_key_value_heads": 4},
    "wav2vec2-bert": {"feature_projection_input_dim": 40},
    "speech_to_text": {"conv_channels": 32, "input_feat_per_channel": 40, "max_source_positions": 64},
    "audio-spectrogram-transformer": {"max_length": 64, "num_mel_bins": 32, "time_stride": 8, "frequency_stride": 8},
    "parakeet_encoder": {"subsampling_conv_channels": 16},
    "lasr_encoder": {"subsampling_conv_channels": 32, "num_mel_bins": 64},
    "videomae": FRAMES,
    "vivit": {**FRAMES, "tubelet_size": (2, 8, 8)},
    "timesformer": {**FRAMES, "drop_path_rate": 0},
    "textnet": {"stem_out_channels": 16, "hidden_sizes": (16, 16, 32, 48, 64)},
    "pvt_v2": {"num_attention_heads": (1, 2, 2, 4)},
    "glpn": {"num_attention_heads": (1, 2, 2, 4)},
    "levit": {"image_size": 64, "hidden_sizes": (32, 48, 64), "num_attention_heads": (2, 3, 4), "drop_path_rate": 0, "patch_size": 16},
    "bit": {"num_groups": 8, "embedding_size": 16},
    "mobilevitv2": {"image_size": 64, "patch_size": 2},
    "xlm": {"emb_dim": 64, "n_heads": 4, "bos_index": 0},
    "flaubert": {"emb_dim": 64, "n_heads": 4},
    "luke": {"entity_vocab_size": 50, "entity_emb_size": 32},
    "roc_bert": {"shape_vocab_size": 100, "pronunciation_vocab_size": 100, "shape_embed_dim": 32, "pronunciation_embed_dim": 48},
    "reformer": {
        "axial_pos_shape": (4, 4), "axial_pos_embds_dim": (16, 48), "hidden_size": 64, "num_attention_heads": 2,
        "attention_head_size": 16, "attn_layers": ("local", "local"), "local_attn_chunk_length": 4, "max_position_embeddings": 16,
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "ernie4_5_moe": {"moe_num_shared_experts": 1, "moe_k": 2},
    "encodec": {"hidden_size": 16, "num_filters": 4, "upsampling_ratios": (4, 2), "codebook_size": 16, "target_bandwidths": (24.0,)},
    "dac": {"encoder_hidden_size": 4, "decoder_hidden_size": 32, "downsampling_ratios": (2, 4), "n_codebooks": 2, "codebook_size": 16},
    "timesfm2_5": {"patch_length": 8, "context_length": 64, "horizon_length": 16, "output_quantile_len": 16},
    "patchtst": {"context_length": 32, "patch_length": 8, "patch_stride": 8, "do_mask_input": False},
    "xmod": {"default_language": "en_XX", "languages": ("en_XX", "de_DE")},
    "fsmt": {"langs": ["en", "de"], "src_vocab_size": 100, "tgt_vocab_size": 100},
    "dinov3_convnext": {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
    "hgnet_v2": {
        "embedding_size": 16, "stem_channels": [3, 8, 16], "stage_in_channels": [16, 32, 48, 64], "stage_mid_channels": [8, 8, 16, 16],
        "stage_out_channels": [32, 48, 64, 64], "stage_numb_of_layers": [2, 2, 2, 2], "hidden_sizes": [32, 48, 64, 64],
    },
    "lilt": {"channel_shrink_ratio": 4, "max_2d_position_embeddings": 100, "hidden_size": 96},
    "layoutlmv3": {"coordinate_size": 12, "shape_size": 8, "input_size": 32, "visual_embed": False, "max_2d_position_embeddings": 100},
    "udop": {"max_2d_position_embeddings": 100},
    "lxmert": {"visual_feat_dim": 32, "l_layers": 1, "x_layers": 1, "r_layers": 1},
    "perceiver": {"num_latents": 8, "d_latents": 64, "num_self_attends_per_block": 2, "num_self_attention_heads": 4, "num_cross_attention_heads": 4},
    "decision_transformer": {"vocab_size": 1, "max_ep_len": 64},
    "clipseg": {"extract_layers": (0, 1), "reduce_dim": 16, "vision_config": {"num_hidden_layers": 3}},
    "groupvit": {
        "vision_config": {"depths": [1, 1, 1], "num_group_tokens": [8, 4, 0], "num_output_groups": [8, 4, 4], "patch_size": 4},
    },
    "siglip": {"text_config": {"max_position_embeddings": 8}},
    "clap": {"audio_config": {"spec_size": 32}},
}  # fmt: skip
"""Options beside those of `tiny`, which make a type valid or smaller."""


def pixels(batch: int, length: int) -> Arguments:
    return {"pixel_values": torch.randn(batch, 3, 32, 32)}


def large_pixels(batch: int, length: int) -> Arguments:
    return {"pixel_values": torch.randn(batch, 3, 64, 64)}


def frames(batch: int, length: int) -> Arguments:
    return {"pixel_values": torch.randn(batch, 4, 3, 16, 16)}


def boxes(batch: int, length: int) -> torch.Tensor:
    """Places of words on a page: left, top, right, bottom."""
    first, size = torch.randint(0, 50, (batch, length, 2)), torch.randint(1, 40, (batch, length, 2))
    return torch.cat([first, first + size], -1)


def with_boxes(batch: int, length: int) -> Arguments:
    return {**with_mask(batch, length), "bbox": boxes(batch, length)}


def with_floating_boxes(batch: int, length: int) -> Arguments:
    return {**with_mask(batch, length), "bbox": boxes(batch, length) / 100}


def beside_objects(batch: int, length: int) -> Arguments:
    return {
        **with_mask(batch, length),
        "visual_feats": torch.randn(batch, 5, 32),
        "visual_pos": torch.rand(batch, 5, 4),
    }


def steps(batch: int, length: int) -> Arguments:
    """States, actions and rewards of a game."""
    return {
        "states": torch.randn(batch, length, 17),
        "actions": torch.randn(batch, length, 4),
        "rewards": torch.randn(batch, length, 1),
        "returns_to_go": torch.randn(batch, length, 1),
        "timesteps": torch.randint(0, 60, (batch, length)),
        "attention_mask": torch.ones(batch, length, dtype=torch.long),
    }


def features(width: int, rows: int = 32, turned: bool = False) -> Callable[[int, int], Arguments]:
    """Spectra of sound: rows of times."""
    return lambda batch, length: {
        "input_features": torch.randn(batch, width, rows) if turned else torch.randn(batch, rows, width)
    }


def to_write(width: int) -> Callable[[int, int], Arguments]:
    return lambda batch, length: {
        **features(width)(batch, length),
        "decoder_input_ids": torch.randint(3, 99, (batch, 5)),
    }


def channel(batch: int, length: int) -> Arguments:
    return {"input_values": torch.randn(batch, 1, 64)}


def spectra(batch: int, length: int) -> Arguments:
    return {"input_values": torch.randn(batch, 64, 32)}


def past(channels: int, rows: int) -> Callable[[int, int], Arguments]:
    """Values of a time series."""
    return lambda batch, length: {
        "past_values": torch.randn(batch, rows, channels) if channels else torch.randn(batch, rows)
    }


OTHERS: dict[str, tuple[Callable[[int, int], Arguments], tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "deepseek_v2",
            "deepseek_v32",
            "glm4_moe_lite",
            "glm_moe_dsa",
            "minicpm3",
            "mistral4",
            "youtu",
            "axk1",
            "axk2",
            "qwen2_vl_text",
            "qwen2_5_vl_text",
            "glm4v_text",
            "glm_image_text",
            "glm_ocr_text",
            "mistral_large4_text",
            "codegen",
            "esmc",
            "xlm",
            "flaubert",
            "luke",
            "roc_bert",
            "gpt_neo",
            "ernie4_5_moe",
            "xmod",
        ),
        (with_mask, ("input_ids", "attention_mask")),
    ),
    "mamba2": (without_mask, ("input_ids",)),
    "fsmt": (to_translate, ()),
    **dict.fromkeys(("swinv2", "donut-swin", "maskformer-swin", "swin2sr", "pvt_v2", "bit"), (pixels, ())),
    **dict.fromkeys(
        ("convnextv2", "textnet", "glpn", "levit", "mobilevitv2", "dinov3_convnext", "hgnet_v2"),
        (large_pixels, ()),
    ),
    **dict.fromkeys(("videomae", "vivit", "timesformer"), (frames, ())),
    **dict.fromkeys(
        ("altclip", "chinese_clip", "clipseg", "metaclip_2", "owlvit", "owlv2", "groupvit", "aimv2", "bridgetower"),
        (captioned, ("input_ids", "attention_mask")),
    ),
    **dict.fromkeys(("bros",), (with_floating_boxes, ("input_ids", "attention_mask", "bbox"))),
    **dict.fromkeys(("lilt", "layoutlmv3"), (with_boxes, ("input_ids", "attention_mask", "bbox"))),
    "lxmert": (beside_objects, ("input_ids", "attention_mask")),
    "decision_transformer": (steps, ("states", "actions", "rewards", "returns_to_go", "timesteps", "attention_mask")),
    "wav2vec2-bert": (features(40), ()),
    "parakeet_encoder": (features(80), ()),
    "lasr_encoder": (features(64), ()),
    "glmasr_encoder": (features(128, 64, turned=True), ()),
    "voxtral_realtime_encoder": (features(128, 64, turned=True), ()),
    "speech_to_text": (to_write(40), ()),
    "audio-spectrogram-transformer": (spectra, ()),
    "encodec": (channel, ()),
    "dac": (channel, ()),
    "timesfm2_5": (past(0, 64), ()),
    "patchtst": (past(1, 32), ()),
    "patchtsmixer": (past(1, 32), ()),
}
"""Other arguments by type, and the ones with a dynamic length."""

FIXED_LENGTH = frozenset(("granitemoehybrid", "nemotron_h", "mamba2", "longt5"))
"""Types of `TEXT` and `TRANSLATORS` that PyTorch can export for one length only."""


def _small(model_type: str) -> Callable[[], torch.nn.Module]:
    return lambda: tiny.model(model_type, OVERRIDES.get(model_type, {}))


def _row(model_type: str, arguments: Callable[[int, int], Arguments], sequences: tuple[str, ...] = ()) -> Network:
    kept = () if model_type in FIXED_LENGTH else sequences
    return Network(_small(model_type), arguments, of_batch(arguments, kept))


def _transformers() -> dict[str, Network]:
    words = ("input_ids", "attention_mask")
    rows = {n: _row(n, with_mask, words) for n in TEXT.split()}
    rows |= {n: _row(n, to_translate, words) for n in TRANSLATORS.split()}
    rows |= {n: _row(n, pixels) for n in IMAGES.split()}
    rows |= {n: _row(n, sound) for n in SOUNDS.split()}
    rows |= {n: _row(n, arguments, sequences) for n, (arguments, sequences) in OTHERS.items()}
    return {f"transformers {n}": row for n, row in rows.items()}


FAMILIES: dict[str, Network] = {
    **_transformers(),
    **{f"timm {n}": of_timm(n, size, **options) for size, options, names in TIMM for n in names.split()},
}

CHEAP = {
    "transformers": """
    afmoe aimv2 arcee axk1 bert-generation bigbird_pegasus bitnet blenderbot clipseg ctrl data2vec-vision diffllama
    ernie4_5 ernie4_5_moe esmc gemma4 glm_ocr_text granite_speech granite_swa gte hrm_text hy_v3
    hyperclovax_vision_v2 ibert idefics3 idefics3_vision internlm3 layoutlm lfm2_vl lfm3 ministral ministral3 mllama
    molmo2_text moshi nanochat nllb-moe nomic_bert olmo3 olmoe patchtst persimmon phimoe pixio qianfan_ocr_vision
    qwen3_asr qwen3_moe radio roberta-prelayernorm roc_bert sam3_vision_model smollm3 splinter umt5 unispeech
    vaultgemma video_llama_3 visual_bert vit_msn vitdet xlm-roberta-xl
    """,
    "timm": """
    aimv2_large_patch14_224 botnet26t_256 convnext_tiny_hnf convnext_zepto_rms_ols deit3_small_patch16_224
    flexivit_small mobilenet_edgetpu_v2_xs qwen3_vit_88m_enc qwen3_vit_88m_merge res2net50_14w_8s resnet14t
    resnet26d resnetblur50d seresnext26d_32x4d shvit_s1 test_coatnet test_convnext2 test_vit2 test_vit3 test_vit4
    test_vit_relpos vit_base_patch14_dinov2 vit_base_patch16_clip_224 vit_dpwee_patch16_reg1_gap_256
    vit_intern300m_patch14_448 vit_little_patch16_reg4_gap_256 vit_small_patch16_36x1_224
    vit_small_patch16_dinov3_qkvb vit_small_patch16_rope_224 vit_xsmall_patch16_clip_224 vovnet39a
    """,
}
"""The ones that take least time, by library."""

SAMPLED = ("transformers esmc", "transformers diffllama", "timm deit3_small_patch16_224")
"""The ones that `make test` runs."""

TESTED: dict[str, Network] = {
    name: replace(FAMILIES[name], sampled=name in SAMPLED)
    for library, names in CHEAP.items()
    for name in (f"{library} {n}" for n in names.split())
}
"""The ones that `make test-full` runs."""
