"""The documented import paths of layers: `frontend.nn.pool2d`, `frontend.nn.layer_norm`."""

from __future__ import annotations

from types import ModuleType

from ait_mlir.name_modules import name_module

PATHS = {
    "container": "ModuleDict ModuleList Sequential",
    "conv1d": "Conv1d Conv1dBias",
    "conv2d": "Conv2d Conv2dBias Conv2dBiasAdd Conv2dBiasAddHardswish Conv2dBiasAddRelu Conv2dBiasFewChannels "
    "Conv2dBiasHardswish Conv2dBiasHardswishFewChannels Conv2dBiasRelu Conv2dBiasReluFewChannels Conv2dBiasSigmoid "
    "Conv2dDepthwise Conv2dDepthwiseBias ConvTranspose2d ConvTranspose2dBias ConvTranspose2dBiasRelu",
    "conv3d": "Conv3d Conv3dBias",
    "dropout": "Dropout",
    "dual_gemm": "T5DenseGatedGeluDense",
    "flash_attention": "FlashAttention",
    "fpn_proposal": "FPNProposal",
    "group_norm": "GroupNorm",
    "identity": "Identity",
    "layer_norm": "LayerNorm",
    "padding": "Ndhwc3to8 Nhwc3to8",
    "pool2d": "AdaptiveAvgPool2d AdaptiveMaxPool2d AvgPool2d MaxPool2d",
    "pool3d": "MaxPool3d",
    "roi_ops": "FPNRoiAlign RoiAlign",
    "upsample": "Upsampling2d Upsampling2dAdd",
    "vanilla_attention": "VanillaCrossAttention VanillaMultiheadAttention vanilla_attention",
    "view_ops": "Flatten Reshape View",
}
"""The layers of each documented module that has another name here."""


def make_modules(package: ModuleType) -> None:
    """Enter the modules of `PATHS` below `package`, which has the layers, in `sys.modules`."""
    for path, names in PATHS.items():
        name_module(f"{package.__name__}.{path}", {name: getattr(package, name) for name in names.split()})
