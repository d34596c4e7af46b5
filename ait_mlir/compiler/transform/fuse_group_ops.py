"""Groups independent products, and independent norms, into one launch."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply, transform
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.utils.graph_utils import get_sorted_ops

__all__ = ["fuse_group_gemm_ops", "fuse_group_layernorm_ops", "fuse_group_ops", "toposort"]


def fuse_group_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with `group_gemm`s of products at one depth, with static sizes, two dims, one layout and one epilogue:
    the elementwise operators that alone read the products, such as a bias and RELU.

    Layer norms with equally many rows become `group_layernorm` in the same way; the longest rows of a group are less
    than four times as long as its shortest. A group has at most 16 operators; operands may have any other sizes.
    """
    return _if_grouped(sorted_graph, apply("fuse_group_ops", sorted_graph, workdir))


def fuse_group_gemm_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The part of `fuse_group_ops` for products."""
    return _of("fuse_group_gemm_ops", "ait.gemm", "group-products", sorted_graph, workdir)


def fuse_group_layernorm_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The part of `fuse_group_ops` for norms."""
    return _of("fuse_group_layernorm_ops", "ait.layer_norm", "group-norms", sorted_graph, workdir)


def _of(name: str, op_name: str, grouping: str, graph: list[Tensor], workdir: str | None) -> list[Tensor]:
    passes = f"fuse-epilogue,{grouping}"
    return _if_grouped(graph, transform(name, graph, workdir, passes, only=lambda op: op.name == op_name))


def _if_grouped(before: list[Tensor], after: list[Tensor]) -> list[Tensor]:
    """The graph `after` if it has more groups; else `before`, in which epilogues are operators of their own."""
    given, found = (
        sum(str(op.attrs["op"]).startswith("group_") for op in get_sorted_ops(graph)) for graph in (before, after)
    )
    return after if found > given else before
