"""Merges parallel products into one product."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = ["fuse_parallel_gemms", "fuse_single_source_parallel_gemms", "toposort"]


def fuse_parallel_gemms(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with one product in place of products whose columns are concatenated.

    Products of the parts of a split, in order, with weights of one shape become one `bmm`, with the parts as batch.
    Products of one input become one product with all weights, whose result is the concatenation.
    """
    return apply("fuse_parallel_gemms", sorted_graph, workdir)


def fuse_single_source_parallel_gemms(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with one product, whose result is split, in place of products of one input with several weights.

    The weights, [n_i, k] each, and the biases are concatenated without cost, because data of weights are laid out when
    the model is compiled or loaded. The products must have layout `rcr`, no epilogue except the bias, and no other
    user.
    """
    return apply("fuse_single_source_parallel_gemms", sorted_graph, workdir)
