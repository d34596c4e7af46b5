"""Networks of `transformers` and `timm` that read images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.importers.vision import timm
from tests.networks.language import built
from tests.networks.network import BATCH, Arguments, Network


def image(argument: str, size: int) -> Callable[[int, int], Arguments]:
    return lambda batch, length: {argument: torch.randn(batch, 3, size, size)}


def hugging(model_type: str, size: int = 32, sampled: bool = False, **options: Any) -> Network:
    """A row of `transformers`; without classes where it would have some."""
    arguments = image("pixel_values", size)
    return Network(built(model_type, **options), arguments, {"pixel_values": {0: BATCH}}, sampled)


def of_timm(name: str, size: int = 64, sampled: bool = False, **options: Any) -> Network:
    """A row of `timm`."""

    def make() -> torch.nn.Module:
        return timm().create_model(name, pretrained=False, num_classes=10, **options)

    return Network(make, image("x", size), {"x": {0: BATCH}}, sampled)


LAYERS = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
VIT = {**LAYERS, "image_size": 32, "patch_size": 8}
PYRAMID = {"hidden_sizes": (16, 32, 48, 64), "depths": (1, 1, 1, 1)}


def _detr() -> torch.nn.Module:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage4"],
    )  # fmt: skip
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_queries": 8}
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        **sizes,
        **heads,
    )
    return transformers.AutoModel.from_config(config)


TRANSFORMERS = {
    "vit": hugging("vit", sampled=True, **VIT),
    "deit": hugging("deit", **VIT),
    "beit": hugging("beit", **VIT, use_relative_position_bias=True),
    "swin": hugging("swin", image_size=32, patch_size=2, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4),
    "dinov2": hugging("dinov2", **LAYERS, image_size=32, patch_size=8),
    "convnext": hugging("convnext", **PYRAMID),
    "resnet": hugging("resnet", embedding_size=16, **PYRAMID),
    "mobilenet_v2": hugging("mobilenet_v2", image_size=32, depth_multiplier=0.35),
    "efficientnet": hugging(
        "efficientnet", image_size=32, hidden_dim=320, width_coefficient=0.25,  in_channels=(32, 16, 24), out_channels=(16, 24, 40),
        kernel_sizes=(3, 3, 5), strides=(1, 2, 2), num_block_repeats=(1, 1, 1), expand_ratios=(1, 6, 6),
    ),
    "segformer": hugging("segformer", size=64, hidden_sizes=(8, 16, 24, 32), depths=(1, 1, 1, 1), num_attention_heads=(1, 2, 3, 4)),
    "detr": Network(_detr, image("pixel_values", 64), {"pixel_values": {0: BATCH}}),
    "yolos": hugging("yolos", **{**VIT, "image_size": (32, 32)}, num_detection_tokens=5),
    "mobilevit": hugging(
        "mobilevit", size=64, image_size=64, hidden_sizes=(24, 32, 40), neck_hidden_sizes=(8, 16, 16, 24, 32, 40, 64)
    ),
    "poolformer": hugging("poolformer", size=64, **PYRAMID),
    "levit": hugging("levit", size=64, image_size=64, hidden_sizes=(32, 48, 64), num_attention_heads=(2, 3, 4), depths=(1, 1, 1)),
    "pvt": hugging("pvt", size=32, image_size=32, hidden_sizes=(8, 16, 24, 32), depths=(1, 1, 1, 1), num_attention_heads=(1, 2, 3, 4)),
}  # fmt: skip

TIMM = {
    "resnet18": of_timm("resnet18", layers=(1, 1, 1, 1), sampled=True),
    "resnet50": of_timm("resnet50", layers=(1, 1, 1, 1)),
    "resnext50_32x4d": of_timm("resnext50_32x4d", layers=(1, 1, 1, 1)),
    "seresnet50": of_timm("seresnet50", layers=(1, 1, 1, 1)),
    "vgg11": of_timm("vgg11", size=32),
    "mobilenetv3_small_100": of_timm("mobilenetv3_small_100"),
    "mobilenetv2_100": of_timm("mobilenetv2_100"),
    "regnety_002": of_timm("regnety_002"),
    "convnext_atto": of_timm("convnext_atto", depths=(1, 1, 1, 1)),
    "convnextv2_atto": of_timm("convnextv2_atto", depths=(1, 1, 1, 1)),
    "swinv2_tiny_window8_256": of_timm(
        "swinv2_tiny_window8_256", img_size=64, window_size=4, embed_dim=32, depths=(2, 2), num_heads=(2, 4)
    ),
    "maxvit_pico_rw_256": of_timm("maxvit_pico_rw_256", img_size=64),
    "coatnet_pico_rw_224": of_timm("coatnet_pico_rw_224", img_size=64),
    "vit_tiny_patch16_224": of_timm("vit_tiny_patch16_224", img_size=64, depth=2),
    "deit_tiny_patch16_224": of_timm("deit_tiny_patch16_224", img_size=64, depth=2),
    "beit_base_patch16_224": of_timm("beit_base_patch16_224", img_size=64, depth=2, embed_dim=192, num_heads=3),
    "cait_xxs24_224": of_timm("cait_xxs24_224", img_size=64, depth=2),
    "mixer_s32_224": of_timm("mixer_s32_224", img_size=64),
    "resmlp_12_224": of_timm("resmlp_12_224", img_size=64),
    "gmlp_ti16_224": of_timm("gmlp_ti16_224", img_size=64),
    "poolformer_s12": of_timm("poolformer_s12"),
    "edgenext_xx_small": of_timm("edgenext_xx_small"),
    "mobilevit_xxs": of_timm("mobilevit_xxs"),
    "levit_128s": of_timm("levit_128s", img_size=64),
    "pvt_v2_b0": of_timm("pvt_v2_b0", depths=(1, 1, 1, 1)),
    "twins_svt_small": of_timm("twins_svt_small", img_size=64, depths=(1, 1, 2, 2)),
    "nest_tiny": of_timm("nest_tiny", img_size=64),
    "hrnet_w18_small": of_timm("hrnet_w18_small"),
    "dla34": of_timm("dla34"),
    "darknet53": of_timm("darknet53"),
    "cspresnet50": of_timm("cspresnet50"),
    "ghostnet_100": of_timm("ghostnet_100"),
    "fbnetc_100": of_timm("fbnetc_100"),
    "inception_v3": of_timm("inception_v3", size=96),
    "xception41": of_timm("xception41"),
    "dm_nfnet_f0": of_timm("dm_nfnet_f0"),
    "hgnetv2_b0": of_timm("hgnetv2_b0"),
    "repvgg_a0": of_timm("repvgg_a0"),
    "davit_tiny": of_timm("davit_tiny", depths=(1, 1, 1, 1), embed_dims=(32, 64, 96, 128), num_heads=(1, 2, 3, 4)),
    "crossvit_tiny_240": of_timm("crossvit_tiny_240"),
    "volo_d1_224": of_timm("volo_d1_224", img_size=64),
    "xcit_nano_12_p16_224": of_timm("xcit_nano_12_p16_224", img_size=64, depth=2),
    "eva02_tiny_patch14_224": of_timm("eva02_tiny_patch14_224", size=56, img_size=56, depth=2),
    "fastvit_t8": of_timm("fastvit_t8", layers=(1, 1, 1, 1)),
    "inception_next_atto": of_timm("inception_next_atto", depths=(1, 1, 1, 1)),
    "convmixer_768_32": of_timm("convmixer_768_32"),
    "lcnet_050": of_timm("lcnet_050"),
    "ese_vovnet19b_dw": of_timm("ese_vovnet19b_dw"),
}

VISION: dict[str, Network] = {
    **{f"transformers {name}": row for name, row in TRANSFORMERS.items()},
    **{f"timm {name}": row for name, row in TIMM.items()},
}
