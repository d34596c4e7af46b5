"""Products, and norms, that do not wait for each other become one launch."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = ["fuse_group_ops", "toposort"]


def fuse_group_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Products as `group_gemm`: those at one depth of the graph, of known sizes, two dims, one layout and one epilogue.

    Layer norms of as many rows become `group_layernorm` in the same way; the longest rows of a group are less than four
    times as long as its shortest. At most 16 join a group; operands may have any other sizes.
    """
    return apply("fuse_group_ops", sorted_graph, workdir)
