"""Pads products of odd sizes to even sizes."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def apply_padding(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """The graph with one more zero in each row of float16 or bfloat16 products whose rows have an odd length.

    M, N and K are padded if they are the length of the rows of an operand or of the result. Sizes of 1, dynamic sizes
    and products with a fused epilogue stay. `constant_folding` then pads the weights once. Our kernels accept odd
    sizes, so the compiler does not run this; it is for kernels that need aligned rows.
    """
    return apply("apply_padding", sorted_graph, workdir)
