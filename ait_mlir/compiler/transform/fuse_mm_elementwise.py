"""Elementwise operators after a matrix product join it."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def fuse_mm_elementwise(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Products with the elementwise operators that alone read them as their epilogue.

    A factor directly behind a product becomes its `alpha`. A product with another reader, one that is an output, and
    an operator that enlarges the result stay as they are.
    """
    return apply("fuse_mm_elementwise", sorted_graph, workdir)
