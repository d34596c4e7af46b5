"""Elementwise operators become one pass over memory; norms keep what follows them."""

from __future__ import annotations

from dataclasses import dataclass

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import fused_elementwise
from ait_mlir.frontend.ops.norm import group_norm, group_norm_swish
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = [
    "FusedElementwiseInfo",
    "fuse_elementwise",
    "fused_elementwise",
    "group_norm",
    "group_norm_swish",
    "process_singleton_elementwise",
    "toposort",
]


@dataclass
class FusedElementwiseInfo:
    """Elementwise operators that become one, what they read and make, and which of that others see."""

    partitioned_ops: list[Operator]
    inputs: list[Tensor]
    outputs: list[Tensor]
    external_inputs: list[Tensor]
    external_outputs: list[Tensor]


def fuse_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Connected elementwise operators of one shape as `fused_elementwise`; `_attrs["elementwise_ops"]` has them."""
    return apply("fuse_elementwise", sorted_graph, workdir)


def process_singleton_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Each elementwise operator as a `fused_elementwise` by itself."""
    return apply("process_singleton_elementwise", sorted_graph, workdir)
