"""Pads batched products of odd sizes to even sizes."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def transform_odd_alignment(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with even rows in batched products of float16 or bfloat16: `apply_padding` only for these products.

    A permute that moves an even size to the end would not help: here it is a view that a product reads by strides.
    """
    return apply("transform_odd_alignment", sorted_graph, workdir)
