"""Products that do not wait for each other become one launch."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = ["fuse_group_ops", "toposort"]


def fuse_group_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Products as `group_gemm`: those at one depth of the graph, of known sizes, two dims, one layout and one epilogue.

    At most 16 join a group; its operands may have any other sizes. Layer norms stay single launches.
    """
    return apply("fuse_group_ops", sorted_graph, workdir)
