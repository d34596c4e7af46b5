"""Groups independent products, and independent norms, into one launch."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply, transform
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = ["fuse_group_gemm_ops", "fuse_group_layernorm_ops", "fuse_group_ops", "toposort"]


def fuse_group_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with `group_gemm`s of products at one depth, with static sizes, two dims, one layout and one epilogue.

    Layer norms with equally many rows become `group_layernorm` in the same way; the longest rows of a group are less
    than four times as long as its shortest. A group has at most 16 operators; operands may have any other sizes.
    """
    return apply("fuse_group_ops", sorted_graph, workdir)


def fuse_group_gemm_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The part of `fuse_group_ops` for products."""
    return transform("fuse_group_gemm_ops", sorted_graph, workdir, "group-products")


def fuse_group_layernorm_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The part of `fuse_group_ops` for norms."""
    return transform("fuse_group_layernorm_ops", sorted_graph, workdir, "group-norms")
