"""What every op means, executable: the yardstick of the passes and of the kernels.

`evaluate_graph` runs an `ait.graph`, `run_program` an `ait_rt.program`, both on NumPy arrays in float64.
"""

from __future__ import annotations

from ait_mlir.reference import (
    attention,
    conv,
    cumulative,
    data,
    detection,
    elementwise,
    foreign,
    gemm,
    grouped,
    index,
    jagged,
    norm,
    order,
    pad,
    pool,
    reduce,
    resize,
    scan,
    view,
)
from ait_mlir.reference.core import RULES, Evaluation, EvaluationError, reference
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.reference.interpreter import run_program

FAMILIES = (
    data,
    detection,
    elementwise,
    gemm,
    conv,
    pad,
    pool,
    resize,
    norm,
    reduce,
    cumulative,
    order,
    view,
    index,
    jagged,
    attention,
    scan,
    grouped,
    foreign,
)
"""The table of families: importing one registers what its ops mean."""

__all__ = ["FAMILIES", "RULES", "Evaluation", "EvaluationError", "evaluate_graph", "reference", "run_program"]
