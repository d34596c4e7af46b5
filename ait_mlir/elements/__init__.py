"""How ops compute one element of a result: the table from which loops are formed, one file for each family."""

from __future__ import annotations

from ait_mlir.elements.forming import form_loops, kernel_op
from ait_mlir.elements.table import ROWS, NoElements, has_elements
from ait_mlir.families import modules

FAMILIES = (
    "elementwise", "quantize", "view", "pad", "pool", "conv", "resize", "reduce", "norm", "gemm", "index", "loops",
)  # fmt: skip
"""The families that have rows; the ops of others stay as they are."""

modules(__name__, FAMILIES)

__all__ = ["ROWS", "NoElements", "form_loops", "has_elements", "kernel_op"]
