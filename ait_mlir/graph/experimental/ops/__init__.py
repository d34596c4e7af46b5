"""Operators of PyTorch that run a graph of this package: `torch.compile` keeps a call as one operator.

They have no gradient. The graphs of earlier calls are kept, by the shapes, strides and data types of the tensors.
"""

from ait_mlir.graph.experimental.ops.moe_grouped_matmul import moe_grouped_matmul
from ait_mlir.graph.experimental.ops.sdpa import scaled_dot_product_attention

__all__ = ["moe_grouped_matmul", "scaled_dot_product_attention"]
