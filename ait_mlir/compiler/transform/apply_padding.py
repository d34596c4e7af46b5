"""Products of odd sizes get even ones."""

from __future__ import annotations

from ait_mlir.compiler.transform.apply import apply
from ait_mlir.frontend.tensor import Tensor


def apply_padding(sorted_graph: list[Tensor], workdir: str | None = None) -> list[Tensor]:
    """Products of float16 or bfloat16 whose rows have an odd number of elements, with a zero more in each row.

    M, N and K count where they are the length of the rows of an operand or of the result; sizes of 1, dynamic sizes and
    products that something was fused into stay. `constant_folding` then pads the weights once. Our kernels take odd
    sizes as they are, so compiling does without this; it is for kernels that need aligned rows.
    """
    return apply("apply_padding", sorted_graph, workdir)
