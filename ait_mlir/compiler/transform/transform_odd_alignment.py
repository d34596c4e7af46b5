"""Batched products of odd sizes get even ones."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def transform_odd_alignment(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Batched products of float16 or bfloat16 with even rows: `apply_padding` for them alone.

    A permute that moves an even size to the end would not help: it is a view here, which a product reads by strides.
    """
    return apply("transform_odd_alignment", sorted_graph, workdir)
