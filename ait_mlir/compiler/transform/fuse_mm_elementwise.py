"""Fuses elementwise operators into the matrix product before them."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def fuse_mm_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with elementwise operators that are a product's only users fused as its epilogue.

    A factor directly after a product becomes its `alpha`. A product with another user, a product that is an output, and
    an operator that enlarges the result are not fused.
    """
    return apply("fuse_mm_elementwise", sorted_graph, workdir)
