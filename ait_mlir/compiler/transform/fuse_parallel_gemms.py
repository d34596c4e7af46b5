"""Products side by side become one."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort

__all__ = ["fuse_parallel_gemms", "fuse_single_source_parallel_gemms", "toposort"]


def fuse_parallel_gemms(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Products that a concatenation along the columns joins, as one product.

    Products of the parts of a split, in order, with weights of one shape become one `bmm`, the parts its batch.
    Products of one input become one product with all weights, whose result is the concatenation.
    """
    return apply("fuse_parallel_gemms", sorted_graph, workdir)


def fuse_single_source_parallel_gemms(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Products of one input with several weights as one product, whose result is split.

    The weights, [n_i, k] each, and the biases are concatenated, which costs nothing: data of weights are laid out when
    the model is compiled or loaded. The products have layout `rcr`, no other operator after the bias, and no other
    reader.
    """
    return apply("fuse_single_source_parallel_gemms", sorted_graph, workdir)
