"""Fuses transposes into the products that read them."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor

__all__ = ["fuse_permute_bmm_and_gemm"]


def fuse_permute_bmm_and_gemm(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with products that read an operand without its transpose: `gemm_rrr(x, w)` for `gemm_rcr(x, w^T)`."""
    return apply("fuse_permute_bmm_and_gemm", sorted_graph, workdir)
