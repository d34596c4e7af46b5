"""Layers: parameters and the operators on them, under their documented names."""

from __future__ import annotations

import sys

from ait_mlir.frontend.nn.activation import GELU
from ait_mlir.frontend.nn.attention import CrossAttention, FlashAttention, MultiheadAttention
from ait_mlir.frontend.nn.batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ait_mlir.frontend.nn.conv import (
    Conv1d,
    Conv1dBias,
    Conv2d,
    Conv2dBias,
    Conv2dBiasAdd,
    Conv2dBiasAddHardswish,
    Conv2dBiasAddRelu,
    Conv2dBiasFewChannels,
    Conv2dBiasHardswish,
    Conv2dBiasHardswishFewChannels,
    Conv2dBiasRelu,
    Conv2dBiasReluFewChannels,
    Conv2dBiasSigmoid,
    Conv2dDepthwise,
    Conv2dDepthwiseBias,
    Conv3d,
    Conv3dBias,
    ConvTranspose2d,
    ConvTranspose2dBias,
    ConvTranspose2dBiasRelu,
)
from ait_mlir.frontend.nn.detection import FPNRoiAlign, RoiAlign
from ait_mlir.frontend.nn.embedding import BertEmbeddings, Embedding
from ait_mlir.frontend.nn.linear import Linear, T5DenseGatedGeluDense
from ait_mlir.frontend.nn.module import Dropout, Identity, Module, ModuleDict, ModuleList, Sequential
from ait_mlir.frontend.nn.norm import GroupNorm, LayerNorm, RMSNorm
from ait_mlir.frontend.nn.pad import Ndhwc3to8, Nhwc3to8
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.nn.paths import make_modules
from ait_mlir.frontend.nn.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d, MaxPool3d
from ait_mlir.frontend.nn.proposal import FPNProposal, Proposal
from ait_mlir.frontend.nn.recurrent import GRU, LSTM, RNN
from ait_mlir.frontend.nn.resize import Upsampling2d, Upsampling2dAdd
from ait_mlir.frontend.nn.vanilla import VanillaCrossAttention, VanillaMultiheadAttention, vanilla_attention
from ait_mlir.frontend.nn.view import Flatten, Reshape, View

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "BertEmbeddings",
    "Conv1d",
    "Conv1dBias",
    "Conv2d",
    "Conv2dBias",
    "Conv2dBiasAdd",
    "Conv2dBiasAddHardswish",
    "Conv2dBiasAddRelu",
    "Conv2dBiasFewChannels",
    "Conv2dBiasHardswish",
    "Conv2dBiasHardswishFewChannels",
    "Conv2dBiasRelu",
    "Conv2dBiasReluFewChannels",
    "Conv2dBiasSigmoid",
    "Conv2dDepthwise",
    "Conv2dDepthwiseBias",
    "Conv3d",
    "Conv3dBias",
    "ConvTranspose2d",
    "ConvTranspose2dBias",
    "ConvTranspose2dBiasRelu",
    "CrossAttention",
    "Dropout",
    "Embedding",
    "FPNProposal",
    "FPNRoiAlign",
    "FlashAttention",
    "Flatten",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Ndhwc3to8",
    "Nhwc3to8",
    "Parameter",
    "Proposal",
    "RMSNorm",
    "Reshape",
    "RoiAlign",
    "Sequential",
    "T5DenseGatedGeluDense",
    "Upsampling2d",
    "Upsampling2dAdd",
    "VanillaCrossAttention",
    "VanillaMultiheadAttention",
    "View",
    "vanilla_attention",
]

make_modules(sys.modules[__name__])
