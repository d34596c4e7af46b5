"""Products and convolutions of special sizes."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def transform_special_ops(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Convolutions whose window is one element as products, products with K = 1 as multiplications.

    Small N and K and single columns need no operator of their own here: selection has kernels for them.
    """
    return apply("transform_special_ops", sorted_graph, workdir)
