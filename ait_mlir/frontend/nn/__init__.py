"""Layers: parameters and the operators on them, under their documented names."""

from __future__ import annotations

from ait_mlir.frontend.nn import bert, gpt2, llama, vit
from ait_mlir.frontend.nn.attention import MultiheadAttention
from ait_mlir.frontend.nn.embedding import Embedding
from ait_mlir.frontend.nn.linear import Linear
from ait_mlir.frontend.nn.module import Dropout, Identity, Module, ModuleList, Sequential
from ait_mlir.frontend.nn.norm import GroupNorm, LayerNorm, RMSNorm
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.nn.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from ait_mlir.frontend.nn.recurrent import GRU, LSTM, RNN
from ait_mlir.frontend.nn.resize import Upsampling2d, Upsampling2dAdd

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "RMSNorm",
    "Sequential",
    "Upsampling2d",
    "Upsampling2dAdd",
    "bert",
    "gpt2",
    "llama",
    "vit",
]
