"""Replaces products and convolutions of special sizes by simpler operators."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def transform_special_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with products in place of convolutions with a window of one element, and multiplications in place of
    products with K = 1.

    Small N and K and single columns need no special operator here: selection has kernels for them.
    """
    return apply("transform_special_ops", sorted_graph, workdir)
