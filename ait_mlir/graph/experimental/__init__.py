"""Attention and grouped products as operators of PyTorch, under the names of cuDNN's experimental package."""

from ait_mlir.graph.experimental import ops

__all__ = ["ops"]
